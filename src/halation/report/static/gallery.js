// Galleries: shown one at a time, filtered by words, sorted by a measure. All of them are in the page.

for (const browser of document.querySelectorAll(".browser")) {
  const galleries = [...browser.querySelectorAll(".gallery")];
  const choice = { way: browser.querySelector("[data-way]").dataset.way, key: browser.querySelector(".tabs [data-key]").dataset.key };
  const filter = browser.querySelector(".filter");
  const order = browser.querySelector(".order");
  const count = browser.querySelector(".count");
  const names = new Map([...browser.querySelectorAll(".segments [data-way]")].map((button) => [button.dataset.way, button.textContent]));
  const cardsOf = new Map(galleries.map((gallery) => [gallery, [...gallery.querySelectorAll(".card")]]));

  const show = () => {
    const wanted = wordsOf(filter.value);
    const counts = new Map(); // direction → how many queries the filter leaves
    for (const gallery of galleries) {
      const isChosen = gallery.dataset.way === choice.way && gallery.dataset.key === choice.key;
      gallery.classList.toggle("inactive", !isChosen);
      if (gallery.dataset.key !== choice.key) continue;
      let shown = 0;
      for (const card of cardsOf.get(gallery)) {
        card.hidden = !wanted.every((word) => joined(card.dataset.words).includes(word));
        shown += !card.hidden;
      }
      counts.set(gallery.dataset.way, `${shown} of ${cardsOf.get(gallery).length}`);
      if (!isChosen) continue;
      const by = order.value;
      const cards = [...cardsOf.get(gallery)];
      if (by) cards.sort((a, b) => Number(b.dataset[by] || NaN) - Number(a.dataset[by] || NaN));
      gallery.querySelector(".cards").append(...cards);
      watch(gallery);
    }
    const [other] = [...counts.keys()].filter((way) => way !== choice.way);
    const beside = other ? `; ${names.get(other)}: ${counts.get(other)}` : "";
    count.textContent = wanted.length ? `${names.get(choice.way)}: ${counts.get(choice.way)} queries${beside}` : "";
    for (const button of browser.querySelectorAll(".tools button")) {
      const on = button.dataset.way === choice.way || button.dataset.key === choice.key;
      button.setAttribute("aria-pressed", String(on));
    }
  };

  browser.querySelector(".tools").addEventListener("click", (event) => {
    const { way, key } = event.target.dataset;
    if (way) choice.way = way;
    if (key) choice.key = key;
    if (way || key) show();
  });
  filter.addEventListener("input", show);
  order.addEventListener("change", show);
  show();
}

document.addEventListener("click", (event) => {
  const open = event.target.closest?.("[data-open]");
  if (open) location.hash = `ask-${open.dataset.open}`;
});
