// One large picture: its captions and numbers, arrow keys to the neighbours, and a button for similar pictures.

import { $, el, icon, sentence, tidy } from "./dom.js";
import { isKnown, percent, photo } from "./view.js";
import { makeWhy } from "./why.js";

// three decimals, a true minus sign, and none before zero
const score = (value) => (Math.abs(value) < 0.0005 ? 0 : value).toFixed(3).replace("-", "−");

export function makeDetail({ findAlike, explain, meaning }) {
  const dialog = $("detail");
  const why = makeWhy({ explain });
  let hits = [];
  let position = 0;
  let query = ""; // the words that found it, if any
  let origin = null; // where the focus was

  const step = (by) => {
    const next = position + by;
    if (next < 0 || next >= hits.length) return;
    position = next;
    draw();
  };

  function draw() {
    why.close();
    const hit = hits[position];
    const frame = el("div", { class: "detail-picture" });
    const [caption, ...others] = hit.captions;
    const arrow = (name, words, by) =>
      el("button", { class: "icon-button arrow", type: "button", "aria-label": words, disabled: position + by < 0 || position + by >= hits.length, onclick: () => step(by) }, icon(name));
    const facts = [
      isKnown(hit.probability) && ["Match probability", percent(hit.probability), sentence(meaning())],
      hit.score !== undefined && ["Score", score(hit.score)],
      ["Item", hit.id],
    ].filter(Boolean);
    const alike = el("button", { class: "button", type: "button", onclick: () => { dialog.close(); findAlike(hit); } }, icon("alike"), "Find similar pictures");
    frame.append(photo(`${hit.image}?size=original`, caption || hit.id, "whole"), arrow("left", "Previous picture", -1), arrow("right", "Next picture", +1));
    dialog.replaceChildren(
      frame,
      el(
        "div",
        { class: "detail-words" },
        el("button", { class: "icon-button dismiss", type: "button", "aria-label": "Close", onclick: () => dialog.close() }, icon("close")),
        el("h2", { id: "detail-title" }, caption ? tidy(caption) : hit.id),
        others.length > 0 && el("ul", {}, others.map((words) => el("li", {}, tidy(words)))),
        el("dl", {}, facts.flatMap(([name, value, title]) => [el("dt", { title }, name), el("dd", { title }, value)])),
        query && why.panel(hit, query, frame),
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
    const shown = hits[position] && document.querySelector(`.card[data-id="${CSS.escape(hits[position].id)}"]`);
    (shown || origin)?.focus();
  });

  return {
    open(all, at, text = "") {
      hits = all;
      query = text;
      position = at;
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
