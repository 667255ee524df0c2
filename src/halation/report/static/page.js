// Shared by all parts: the data, parsed on first use; elements made without HTML; pictures, each stored once.

const byId = (id) => document.getElementById(id);
const kept = {};
const read = (id) => (kept[id] ??= JSON.parse(byId(id).textContent));

// el("p", {class: "x", text: "…"}, child, …): text never becomes HTML
const el = (name, options = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

const picture = (image) => el("span", { class: "picture", "data-picture": image }, el("span", { class: "name", text: read("data").names[image] }));

const fill = (box) => {
  if (box.dataset.filled) return;
  box.dataset.filled = "yes";
  const image = box.dataset.picture;
  const code = read("pictures")[image];
  if (!code) return;
  const shown = el("img", { alt: box.textContent, decoding: "async" });
  shown.src = `data:image/webp;base64,${code}`;
  box.replaceChildren(shown);
};

const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      fill(entry.target);
      watcher.unobserve(entry.target);
    }
  },
  { rootMargin: "300px" },
);
const watch = (root) => root.querySelectorAll(".picture:not([data-filled])").forEach((box) => watcher.observe(box));

const short = (value) => {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text = size !== 0 && (size < 0.001 || size >= 10000) ? value.toExponential(1) : String(Number(value.toPrecision(3)));
  return text.replace(/^-/, "−");
};

// words of a filter; "image → text" stays one word, because it names a direction
const joined = (text) => text.toLowerCase().replaceAll("->", "→").replace(/\b(image|text)\s+(?=→)/g, "$1").replace(/→\s+(?=image|text)/g, "→");
const wordsOf = (text) => joined(text).split(/\s+/).filter(Boolean);
const answers = (count) => `${count.toLocaleString("en")} right answer${count === 1 ? "" : "s"}`;
const sections = new Map(); // id of a section → the function that fills it when it comes near

const nearby = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) if (entry.isIntersecting) begin(entry.target.id);
  },
  { rootMargin: "600px" },
);
const begin = (id) => {
  const make = sections.get(id);
  if (!make) return;
  sections.delete(id);
  nearby.unobserve(byId(id));
  make();
};
const onApproach = (id, make) => {
  sections.set(id, make);
  nearby.observe(byId(id));
};

// fill a section at once if the keyboard enters it
document.addEventListener("focusin", (event) => begin(event.target.closest("main > section")?.id));

// mark the current section in the navigation bar
const marks = new Map([...document.querySelectorAll(".bar nav a")].map((link) => [link.hash.slice(1), link]));
const inView = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      const link = marks.get(entry.target.id);
      if (!link || !entry.isIntersecting) continue;
      marks.forEach((other) => other.removeAttribute("aria-current"));
      link.setAttribute("aria-current", "true");
      const list = link.closest("ul");
      list.scrollLeft = link.offsetLeft - list.clientWidth / 2;
    }
  },
  { rootMargin: "-25% 0px -70% 0px" },
);
document.querySelectorAll("main > section").forEach((section) => inView.observe(section));

watch(document);

// before printing: fill every section and picture, and use light colours
let themeBefore = null;
addEventListener("beforeprint", () => {
  themeBefore = document.documentElement.dataset.theme ?? null;
  document.documentElement.dataset.theme = "light";
  [...sections.keys()].forEach(begin);
  document.querySelectorAll(".picture:not([data-filled])").forEach(fill);
  dispatchEvent(new Event("recolour"));
});
addEventListener("afterprint", () => {
  if (themeBefore === null) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = themeBefore;
  dispatchEvent(new Event("recolour"));
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("recolour")));
