// Turns answers into elements. No state, no requests.

import { count, el, icon, sentence, tidy } from "./dom.js";

const NOUNS = { images: ["picture", "pictures"], captions: ["caption", "captions"] };
const AMBIGUITY = {
  specific: { glow: "tight", name: "A specific", amount: "few", verb: "should" },
  ordinary: { glow: "middling", name: "An ordinary", amount: "some", verb: "should" },
  broad: { glow: "wide", name: "A broad", amount: "many different", verb: "can" },
};

// what a match probability predicts, by who judged the matches that it was fitted on
const MEANINGS = { annotations: "probability that it was annotated as a match", exact: "probability that it matches" };
export const meaning = (judge) => (judge?.startsWith("people") ? "probability that a person would accept it" : MEANINGS[judge] || MEANINGS.exact);

export function percent(probability) {
  if (probability >= 0.995) return "> 99 %";
  if (probability < 0.005) return "< 1 %";
  return `${Math.round(100 * probability)} %`;
}

function chance(probability) {
  if (probability >= 0.995) return "above 99 %";
  if (probability < 0.005) return "below 1 %";
  return `of ${percent(probability)}`;
}

export const isKnown = (probability) => probability !== null && probability !== undefined;

export const firstCaption = (hit) => tidy(hit.captions[0] || "");

function bar(probability) {
  const fill = el("span", { class: "fill" });
  fill.style.setProperty("--share", probability); // not a style attribute, which the content policy forbids
  return el("span", { class: "bar", "aria-hidden": "true" }, fill);
}

export function photo(source, words, className) {
  const image = el("img", { src: source, alt: words, loading: "lazy", decoding: "async", draggable: "false" });
  const frame = el("span", { class: className }, image);
  image.addEventListener("load", () => {
    frame.classList.add("loaded");
    frame.classList.toggle("tiny", image.naturalWidth < 160);
  });
  image.addEventListener("error", () => {
    frame.classList.add("gone", "loaded");
    frame.replaceChildren(icon("gone"), el("span", {}, "This picture is no longer on the disk"));
  });
  return frame;
}

function card(hit, open, judge) {
  const caption = firstCaption(hit);
  const shown = isKnown(hit.probability) ? percent(hit.probability) : "";
  const name = [caption || hit.id, shown && `${shown} ${meaning(judge)}`].filter(Boolean).join(", ");
  return el(
    "li",
    {},
    el(
      "button",
      { class: "card", type: "button", "aria-label": name, "aria-haspopup": "dialog", "data-id": hit.id, onclick: open },
      photo(hit.image, "", "frame"),
      shown && el("span", { class: "chance", title: sentence(meaning(judge)) }, bar(hit.probability), el("span", { class: "percent" }, shown)),
      el("span", { class: caption ? "caption" : "caption nameless" }, caption || hit.id),
    ),
  );
}

function line(hit, judge) {
  const shown = isKnown(hit.probability) ? percent(hit.probability) : "";
  return el(
    "li",
    { class: "line" },
    el("p", { class: "caption-text" }, firstCaption(hit) || hit.id),
    shown &&
      el(
        "div",
        {
          class: "chance", role: "meter", title: sentence(meaning(judge)), "aria-label": sentence(meaning(judge)), "aria-valuemin": "0",
          "aria-valuemax": "100", "aria-valuenow": Math.round(100 * hit.probability), "aria-valuetext": shown,
        },
        bar(hit.probability),
        el("span", { class: "percent" }, shown),
      ),
  );
}

export function hits(answer, open, judge) {
  if (answer.side === "captions") return el("ol", { class: "lines" }, answer.hits.map((hit) => line(hit, judge)));
  const cards = answer.hits.map((hit, position) => card(hit, () => open(answer.hits, position), judge));
  return el("ol", { class: answer.verdict === "nothing" ? "grid faint" : "grid" }, cards);
}

function ambiguityWords(answer, thing) {
  const words = AMBIGUITY[answer.ambiguity];
  return words ? [`${words.name} ${thing}:`, `${words.amount} ${NOUNS[answer.side][1]} ${words.verb} fit.`] : null;
}

function ambiguity(answer, thing) {
  const words = ambiguityWords(answer, thing);
  if (!words) return null;
  return el(
    "p",
    { class: "ambiguity", "data-ambiguity": answer.ambiguity },
    el("span", { class: `glow ${AMBIGUITY[answer.ambiguity].glow}`, "aria-hidden": "true" }),
    el("span", {}, el("strong", {}, words[0]), ` ${words[1]}`),
  );
}

export function facts(answer, total) {
  const noun = NOUNS[answer.side];
  const all = count(total, ...noun);
  const shown = answer.hits.length < total ? `Best ${answer.hits.length.toLocaleString("en")} of ${all}` : all;
  const took = `${milliseconds(answer.encode_ms)} to read the query, ${milliseconds(answer.search_ms)} to search`;
  return el("p", { class: "facts", title: took }, `${shown} · ${milliseconds(answer.encode_ms + answer.search_ms)}`);
}

const UNSURE = "Not sure that anything here matches.";

// how ambiguous the query is and how many hits to expect to match, or why that is not known; `beside` goes next to it
export function summary(answer, thing, calibrated, ...beside) {
  const why = !calibrated && el("p", { class: "ambiguity" }, "No probabilities: the model is not calibrated.");
  const expected = answer.expectation && el("p", { class: "expectation" }, sentence(answer.expectation));
  const left = [ambiguity(answer, thing) || why, expected].filter(Boolean);
  return left.length || beside.length ? el("div", { class: "summary" }, el("div", { class: "reading" }, left), ...beside) : null;
}

// the line above hits of which it is not known whether any matches
function unsure() {
  return el("p", { class: "unsure" }, el("span", { class: "hollow", "aria-hidden": "true" }), el("span", {}, el("strong", {}, UNSURE), " These are the nearest."));
}

// what to say above the hits; nothing where something matches
export function verdict(answer, query) {
  return { nothing: nothing(answer, query), unsure: unsure() }[answer.verdict] || null;
}

export const divider = (words, ...beside) => el("div", { class: "divider" }, el("h2", {}, words), ...beside);

const milliseconds = (time) => (time < 10 ? `${time.toFixed(1)} ms` : time < 1000 ? `${Math.round(time)} ms` : `${(time / 1000).toFixed(1)} s`);

export function notes(answer) {
  const all = [answer.promise, ...answer.notes].filter(Boolean);
  if (!all.length) return null;
  return el("ul", { class: "notes" }, all.map((note) => el("li", {}, sentence(note))));
}

function nothing(answer, query) {
  const best = answer.hits[0];
  const likely = best && isKnown(best.probability) ? ` The best of them matches with a probability ${chance(best.probability)}.` : "";
  const closest = answer.side === "captions" ? "closest captions" : "closest pictures";
  return el(
    "div",
    { class: "nothing" },
    el("span", { class: "hollow", "aria-hidden": "true" }),
    el("h2", {}, `Nothing here matches “${query}”.`),
    el("p", {}, best ? `Below are the ${closest}, in case they help.${likely}` : "The index is empty."),
  );
}

export function home(listing, examples, open, ask) {
  const shown = listing.items.filter((entry) => entry.image);
  const tiles = shown.map((entry, position) => {
    const button = el(
      "button",
      { class: "tile", type: "button", "aria-label": firstCaption(entry) || entry.id, "aria-haspopup": "dialog", onclick: () => open(shown, position) },
      photo(entry.image, "", "frame"),
    );
    return el("li", {}, button);
  });
  return [
    examples.length > 0 &&
      el(
        "div",
        { class: "examples" },
        el("h2", {}, "Try"),
        el("ul", {}, examples.map((words) => el("li", {}, el("button", { class: "chip", type: "button", onclick: () => ask(words) }, words)))),
      ),
    tiles.length > 0 && divider("From the collection"),
    tiles.length > 0 && el("ul", { class: "mosaic" }, tiles),
    listing.total === 0 && problem("This index is empty.", "Embed some pictures, index them, and reload the server."),
  ].filter(Boolean);
}

export function problem(title, words, again) {
  return el(
    "div",
    { class: "problem", role: "alert" },
    el("h2", {}, title),
    el("p", {}, words),
    again && el("button", { class: "button", type: "button", onclick: again }, "Try again"),
  );
}

export function skeleton() {
  const cards = Array.from({ length: 12 }, () => el("li", {}, el("span", { class: "card ghost" }, el("span", { class: "frame" }), el("span", { class: "ghost-line" }))));
  return el("ul", { class: "grid", "aria-hidden": "true" }, cards);
}

export function spoken(answer, thing) {
  const noun = NOUNS[answer.side];
  if (answer.verdict === "nothing") return `Nothing here matches. Showing the closest ${count(answer.hits.length, ...noun)}.`;
  const best = answer.hits[0];
  const shown = answer.verdict === "unsure" ? `${UNSURE} Showing the nearest ${count(answer.hits.length, ...noun)}.` : `${count(answer.hits.length, ...noun)}.`;
  const likely = best && isKnown(best.probability) && `The best matches with a probability ${chance(best.probability)}.`;
  return [shown, sentence(answer.expectation), likely, ...(ambiguityWords(answer, thing) || [])].filter(Boolean).join(" ");
}
