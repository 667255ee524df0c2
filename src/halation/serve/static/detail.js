// One picture, large: what is known about it, the neighbours by arrow keys, and more like it.

import { $, el, icon, tidy } from "./dom.js";
import { isKnown, percent, photo } from "./view.js";
import { makeWhy } from "./why.js";

// three places, a true minus, and no minus before zero
const score = (value) => (Math.abs(value) < 0.0005 ? 0 : value).toFixed(3).replace("-", "−");

export function makeDetail({ findAlike, explain }) {
  const dialog = $("detail");
  const why = makeWhy({ explain });
  let hits = [];
  let place = 0;
  let asked = ""; // the words it was found by, if any
  let origin = null; // where the focus was

  const step = (by) => {
    const next = place + by;
    if (next < 0 || next >= hits.length) return;
    place = next;
    draw();
  };

  function draw() {
    why.close();
    const hit = hits[place];
    const frame = el("div", { class: "detail-picture" });
    const [said, ...others] = hit.captions;
    const arrow = (name, words, by) =>
      el("button", { class: "icon-button arrow", type: "button", "aria-label": words, disabled: place + by < 0 || place + by >= hits.length, onclick: () => step(by) }, icon(name));
    const facts = [
      isKnown(hit.probability) && ["Probability of a match", percent(hit.probability)],
      hit.score !== undefined && ["Score", score(hit.score)],
      ["Item", hit.id],
    ].filter(Boolean);
    const alike = el("button", { class: "button", type: "button", onclick: () => { dialog.close(); findAlike(hit); } }, icon("alike"), "Find pictures like it");
    frame.append(photo(`${hit.image}?size=original`, said || hit.id, "whole"), arrow("left", "Previous picture", -1), arrow("right", "Next picture", +1));
    dialog.replaceChildren(
      frame,
      el(
        "div",
        { class: "detail-words" },
        el("button", { class: "icon-button dismiss", type: "button", "aria-label": "Close", onclick: () => dialog.close() }, icon("close")),
        el("h2", { id: "detail-title" }, said ? tidy(said) : hit.id),
        others.length > 0 && el("ul", {}, others.map((words) => el("li", {}, tidy(words)))),
        el("dl", {}, facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
        asked && why.panel(hit, asked, frame),
        alike,
      ),
    );
  }

  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(+1);
    else return;
    event.preventDefault();
    dialog.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // the backdrop
  });
  dialog.addEventListener("close", () => {
    why.close();
    const shown = hits[place] && document.querySelector(`.card[data-id="${CSS.escape(hits[place].id)}"]`);
    (shown || origin)?.focus();
  });

  return {
    open(all, at, text = "") {
      hits = all;
      asked = text;
      place = at;
      origin = document.activeElement;
      draw();
      dialog.showModal();
    },
    get isOpen() {
      return dialog.open;
    },
    close: () => dialog.close(),
  };
}
