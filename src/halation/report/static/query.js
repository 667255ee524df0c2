// One query, chosen from a list: its rankings side by side, with the ranks that ASP compares.

onApproach("query", () => {
  const { queries, captions, names, of, runs, sizes, marks } = read("data");
  const LIST = 60; // most options in the list; typing narrows it
  const box = byId("query-filter"), list = byId("query-list"), shown = byId("query-shown");
  const first = new Map();
  of.forEach((image, caption) => first.has(image) || first.set(image, caption));
  const label = (query) => (query.way === "t2i" ? captions[query.item] : `${names[query.item]} · ${captions[first.get(query.item)] ?? ""}`);
  const words = queries.map((query) => label(query).toLowerCase());
  const key = (query) => `${query.way}-${query.item}`;
  let current = null;
  let active = -1;

  const options = () => [...list.children];
  const activate = (position) => {
    const all = options();
    active = Math.max(-1, Math.min(position, all.length - 1));
    all.forEach((option, k) => option.classList.toggle("active", k === active));
    if (active >= 0) {
      box.setAttribute("aria-activedescendant", all[active].id);
      all[active].scrollIntoView({ block: "nearest" });
    } else box.removeAttribute("aria-activedescendant");
  };

  const offer = () => {
    const wanted = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = queries.filter((_, k) => wanted.every((word) => words[k].includes(word)));
    list.replaceChildren(
      ...matches.slice(0, LIST).map((query) =>
        el(
          "li",
          { role: "option", id: `option-${key(query)}`, "data-key": key(query), "aria-selected": String(key(query) === current) },
          query.way === "i2t" ? picture(query.item) : el("span", { class: "kind", text: "“”", "aria-hidden": "true" }),
          el("span", { text: label(query) }),
        ),
      ),
    );
    byId("query-count").textContent = matches.length > LIST ? `${LIST} of ${matches.length} queries; type to find more` : `${matches.length} queries`;
    activate(-1);
    watch(list);
  };

  const range = (a, b) => (a === b ? a.toLocaleString("en") : `${a.toLocaleString("en")}–${b.toLocaleString("en")}`);
  const bar = (share) => {
    const made = el("span", { class: "ratio", role: "img", "aria-label": `ratio ${share.toFixed(2)}` }, el("span"));
    made.firstChild.style.setProperty("width", `${100 * share}%`);
    return made;
  };

  const entry = (way, [item, score, relevance, a, b, c, d, ratio, mark], by) => {
    const [sign, text] = marks[mark];
    const what = way === "t2i" ? [picture(item), el("p", { class: "words", text: captions[first.get(item)] ?? "" })] : [el("p", { class: "words", text: captions[item] })];
    return el(
      "li",
      { class: `ranked ${mark || "unmarked"}`, "data-item": item, tabindex: "0" },
      ...what,
      el(
        "dl",
        {},
        el("div", { class: by === "relevance" ? "" : "current" }, el("dt", { text: "by score" }), el("dd", { text: range(a, b), title: `score ${short(score)}` })),
        el("div", { class: by === "relevance" ? "current" : "" }, el("dt", { text: "by relevance" }), el("dd", { text: range(c, d), title: `relevance ${short(relevance)}` })),
        el("div", {}, el("dt", { text: "ratio" }), el("dd", {}, bar(ratio), ratio.toFixed(2))),
      ),
      el("p", { class: "details" }, el("span", { class: "mark", text: `${sign} ${text}`.trim() }), el("span", { text: `score ${short(score)} · relevance ${relevance.toFixed(2)}` })),
    );
  };

  const column = (query, title, by) =>
    query[by].length
      ? el("div", { class: "column" }, el("h4", { text: title }), el("ol", {}, ...query[by].map((one) => entry(query.way, one, by))))
      : null;

  const show = (query) => {
    current = key(query);
    const values = query.values;
    const n = sizes[query.way];
    const chips = [
      values["R@1"] > 0 ? ["R@1 hit", "hit"] : ["R@1 miss", "miss"],
      [`first right answer: rank ${values.rank.toLocaleString("en")}`],
      [`R-P ${(100 * values["R-P"]).toFixed(1)}`],
      values.PMRP !== undefined ? [`PMRP ${(100 * values.PMRP).toFixed(1)}`] : null,
      [answers(query.right)],
      query.sigma !== null ? [`σ ${short(query.sigma)}`] : null,
    ].filter(Boolean);
    const asp = values["ASP(tfidf)"];
    const measured = el("ul", { class: "chips" }, ...chips.map(([text, kind]) => el("li", { text, class: kind })));
    const head =
      query.way === "t2i"
        ? [el("p", { class: "query-text", text: `“${captions[query.item]}”` }), measured]
        : [picture(query.item), el("div", {}, el("p", { class: "query-text", text: captions[first.get(query.item)] ?? "" }, el("small", { text: names[query.item] })), measured)];
    shown.replaceChildren(
      el("header", { class: query.way }, ...head),
      el("p", { class: "sum", text: `ASP ${(100 * asp).toFixed(1)}: the mean ratio of the two ranks over all ${n.toLocaleString("en")} items. A range of ranks means that items are tied.` }),
      el(
        "div",
        { class: "columns" },
        column(query, `By score of ${runs[0]}`, "score"),
        column(query, "By relevance (tf-idf)", "relevance"),
        column(query, `By score of ${runs[1] ?? ""}`, "other"),
      ),
    );
    options().forEach((option) => option.setAttribute("aria-selected", String(option.dataset.key === current)));
    watch(shown);
  };

  const choose = (option) => option && (location.hash = `ask-${option.dataset.key}`);
  const follow = () => {
    const wanted = location.hash.startsWith("#ask-") && queries.find((query) => key(query) === location.hash.slice(5));
    if (!wanted) return false;
    show(wanted);
    return true;
  };

  // the same item is highlighted in all rankings at once
  const highlight = (event) => {
    const item = event.type === "pointerleave" ? null : event.target.closest?.("[data-item]")?.dataset.item;
    shown.querySelectorAll("[data-item]").forEach((entry) => entry.classList.toggle("highlighted", item !== undefined && entry.dataset.item === item));
  };
  shown.addEventListener("pointerover", highlight);
  shown.addEventListener("pointerleave", highlight);
  shown.addEventListener("focusin", highlight);

  box.addEventListener("input", offer);
  box.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: active + 1, ArrowUp: Math.max(0, active - 1), Home: 0, End: list.children.length - 1 };
    if (event.key in moves && (list.children.length && (event.key.startsWith("Arrow") || active >= 0))) activate(moves[event.key]);
    else if (event.key === "Enter") choose(options()[Math.max(0, active)]);
    else if (event.key === "Escape" && box.value) {
      box.value = "";
      offer();
    } else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => choose(event.target.closest("[data-key]")));
  addEventListener("hashchange", follow);
  offer();
  if (!follow() && queries.length) show(queries[0]);
});

const toQuery = () => {
  if (!location.hash.startsWith("#ask-")) return;
  begin("query");
  byId("query").scrollIntoView();
};
addEventListener("hashchange", toQuery);
toQuery();
