// Why was this picture found? The parts of its score, and how words and regions of the picture influenced it.

import { el, icon, sentence } from "./dom.js";

const NAMES = { mean: "Mean", spread: "Spread", points: "Points", means: "Attention", whole: "Whole", filter: "Filter" };
const MOST = 4; // ways to look, besides the influence

const number = (value, digits = 3) => {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
};

// the ways to look at an explanation: the influence of each part, then where each head looks
function views(why) {
  const ways = [{
    name: "Influence",
    words: why.words.map((word) => word.influence),
    cells: why.image_influence,
    both: true,
    legend: "How much the score falls when a word is left out, or a part of the picture is painted over. Red speaks for the match, blue against it.",
  }];
  const add = (attentions, part) => {
    for (const { of, heads, weights } of attentions) {
      weights.forEach((values, head) => {
        const name = [NAMES[of] || of, heads[head]].filter(Boolean).join(" ");
        let one = ways.find((other) => other.name === name);
        if (!one) ways.push((one = { name, words: null, cells: null, both: false, legend: `Where the model looks (${name.toLowerCase()}). Attention does not prove that it mattered.` }));
        one[part] = values;
      });
    }
  };
  add(why.image_attention, "cells");
  add(why.text_attention, "words");
  return ways.slice(0, 1 + MOST);
}

// one pixel per cell, enlarged smoothly
function drawn(cells, both, width, height) {
  const [rows, columns] = [cells.length, cells[0].length];
  const most = Math.max(1e-12, ...cells.flat().map(Math.abs));
  const pixels = new ImageData(columns, rows);
  cells.flat().forEach((value, cell) => {
    const share = Math.min(1, Math.abs(value) / most);
    const colour = both ? (value > 0 ? [214, 64, 31] : [33, 102, 172]) : [12, 9, 8];
    pixels.data.set([...colour, 255 * (both ? 0.78 * share : 0.84 * (1 - share))], 4 * cell);
  });
  const small = document.createElement("canvas");
  [small.width, small.height] = [columns, rows];
  small.getContext("2d").putImageData(pixels, 0, 0);
  const canvas = el("canvas", { class: "heat", "aria-hidden": "true" });
  [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = true;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(small, 0, 0, width, height);
  return canvas;
}

// lay a sheet over the part of the picture that the model sees; returns a function that stops following the picture
function lay(frame, view, chosen) {
  frame.querySelector(".heat")?.remove();
  const image = frame.querySelector("img");
  frame.classList.toggle("grey", Boolean(chosen?.cells && chosen.both));
  if (!image || !chosen?.cells) return null;
  const sheet = drawn(chosen.cells, chosen.both, 480, 480);
  const align = () => {
    const [left, top, right, bottom] = view;
    const [wide, high] = [image.offsetWidth, image.offsetHeight];
    const set = (name, value) => sheet.style.setProperty(name, `${value}px`);
    set("left", image.offsetLeft + left * wide);
    set("top", image.offsetTop + top * high);
    set("width", (right - left) * wide);
    set("height", (bottom - top) * high);
  };
  align();
  frame.append(sheet);
  const watch = new ResizeObserver(align);
  for (const one of [image, frame]) watch.observe(one); // the picture may move without changing its size
  return () => watch.disconnect();
}

function chips(why, chosen) {
  const most = Math.max(1e-12, ...(chosen.words || []).map(Math.abs)); // Math.abs(null) is 0
  const chip = (word, position) => {
    const looked = chosen.words && chosen.words[position] !== null; // otherwise its influence is unknown, which is not the same as none
    const value = looked ? chosen.words[position] : 0;
    const shown = chosen.both ? number(value) : `${Math.round(100 * value)} %`;
    const kind = !looked ? "not-looked" : chosen.both ? (value > 0 ? "for" : "against") : "look";
    const meaning = chosen.both ? (Number(value.toFixed(3)) === 0 ? "changes nothing" : value > 0 ? "speaks for it" : "speaks against it") : "of the attention";
    const node = el(
      "li",
      { class: `chip-word ${kind}`, title: looked ? `${word.word}: ${meaning}, ${shown}` : `${word.word}: not measured` },
      el("span", { class: word.known ? "" : "unknown" }, word.word),
      chosen.words && el("small", {}, looked ? shown : "–"),
      !word.known && el("span", { class: "visually-hidden" }, " (not known to the model)"),
    );
    node.style.setProperty("--share", Math.abs(value) / most);
    return node;
  };
  return el("ol", { class: "chip-words", "aria-label": `Words: ${chosen.name.toLowerCase()}` }, why.words.map(chip));
}

function parts(why) {
  const rows = why.parts.length > 1 ? [...why.parts, { name: "score", value: why.score }] : [];
  const most = Math.max(1e-12, ...rows.map((row) => Math.abs(row.value)));
  const row = ({ name, value, formula }) => {
    const fill = el("span", { class: value > 0 ? "fill for" : "fill against" });
    fill.style.setProperty("--share", Math.abs(value) / most);
    return el("li", { title: formula }, el("span", {}, name), el("span", { class: "bar", "aria-hidden": "true" }, fill), el("span", { class: "number" }, number(value)));
  };
  return rows.length > 0 && el("ol", { class: "parts", "aria-label": "Parts of the score" }, rows.map(row));
}

function facts(why) {
  const rows = Object.entries(why.facts)
    .filter(([name]) => name.startsWith("σ"))
    .map(([name, value]) => [name.replace(" (geometric mean)", ""), value.toPrecision(3)]);
  return rows.length > 0 && el("dl", {}, rows.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// the panel of one picture; `close` removes the sheet and cancels the request under way
export function makeWhy({ explain }) {
  const kept = new Map();
  let unfollow = null; // stops the sheet from following the picture
  let stop = null; // cancels the request under way, so that the server can stop

  const uncover = () => {
    unfollow?.();
    unfollow = null;
  };
  const close = () => {
    uncover();
    stop?.abort();
    stop = null;
  };

  function show(panel, frame, why) {
    const ways = views(why);
    const body = el("div", {});
    const buttons = ways.map((way) => el("button", { class: "way", type: "button", "aria-pressed": "false", onclick: () => choose(way) }, way.name));
    function choose(way) {
      uncover();
      buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(ways[number] === way)));
      body.replaceChildren(chips(why, way), el("p", { class: "legend" }, way.legend));
      unfollow = lay(frame, why.view, way);
    }
    panel.replaceChildren(
      el("h3", {}, "Why this picture?"),
      el("div", { class: "ways", role: "group", "aria-label": "What to show" }, buttons),
      body,
      ...[parts(why), facts(why)].filter(Boolean),
      ...[...why.notes, why.about_image_attention, why.about_text_attention].filter(Boolean).map((note) => el("p", { class: "legend" }, sentence(note))),
      el("p", { class: "visually-hidden", role: "status" }, "Explained."),
    );
    choose(ways[0]);
  }

  return {
    close,
    panel(hit, text, frame) {
      const panel = el("section", { class: "why", "aria-label": "Why this picture?" });
      const ask = async () => {
        const key = JSON.stringify([text, hit.id]);
        panel.replaceChildren(el("p", { class: "legend", role: "status" }, "Measuring: each part is left out in turn …"));
        stop = new AbortController();
        try {
          if (!kept.has(key)) kept.set(key, await explain(text, hit.id, stop.signal));
          if (panel.isConnected) show(panel, frame, kept.get(key));
          panel.querySelector("button")?.focus({ preventScroll: true });
        } catch (error) {
          if (error.name === "AbortError") return; // the panel is gone
          panel.replaceChildren(el("p", { class: "legend", role: "alert" }, error.message), button);
        }
      };
      const button = el("button", { class: "button", type: "button", onclick: ask }, icon("why"), "Why this picture?");
      panel.append(button);
      return panel;
    },
  };
}
