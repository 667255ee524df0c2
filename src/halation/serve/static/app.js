// What is asked, what is shown, and the address that says so. Answers that come too late are dropped.

import * as api from "./api.js";
import { makeDetail } from "./detail.js";
import { $, count, el } from "./dom.js";
import * as incoming from "./incoming.js";
import * as keys from "./keys.js";
import * as view from "./view.js";

const PAGE = 24; // hits at first, and with each "more"
const CAPTIONS = 5; // of a picture that is looked for
const PAUSE = 160; // ms without a key before a search
const SLOW = 120; // ms before waiting is shown

const query = $("query");
const results = $("results");
let about = null;
let asked = { kind: "home" }; // or {kind: "text", text, k} or {kind: "image", file, name, like, k}
let turn = 0; // answers of an earlier turn are not shown
let stop = null;
let pause = 0;
let preview = "";
let retry = 0;

const detail = makeDetail({ findAlike: (hit) => alike(hit.id), explain: api.explain });
const isBusy = () => detail.isOpen || $("token").open;

// --- asking ---

function begin() {
  turn += 1;
  stop?.abort();
  clearTimeout(pause);
  clearTimeout(retry);
  stop = new AbortController();
  const mine = turn;
  const slow = setTimeout(() => {
    if (mine !== turn) return;
    $("waiting").hidden = false;
    results.setAttribute("aria-busy", "true");
    if (!results.children.length) results.replaceChildren(view.skeleton());
  }, SLOW);
  const end = () => {
    clearTimeout(slow);
    if (mine !== turn) return;
    $("waiting").hidden = true;
    results.removeAttribute("aria-busy");
  };
  return { mine: () => mine === turn, signal: stop.signal, end };
}

async function ask() {
  const now = begin();
  const what = asked;
  try {
    about = about || (await api.about());
    if (!now.mine()) return;
    greet();
    const find = { home: showHome, text: showText, image: showImage }[what.kind];
    const draw = await find(what, now.signal);
    if (!now.mine()) return;
    draw();
    results.classList.remove("stale");
    $("problem").replaceChildren();
  } catch (error) {
    if (now.mine() && error.name !== "AbortError") fail(error);
  } finally {
    now.end();
  }
}

async function showHome() {
  const size = 36;
  const offset = about.images > size ? Math.floor(Math.random() * (about.images - size)) : 0;
  const listing = await api.list(offset, size);
  const said = listing.items.flatMap((entry) => entry.captions.slice(0, 2)).filter((words) => words.length < 60);
  const examples = [...new Set(said)].filter((_, place) => place % 5 === 0).slice(0, 4);
  return () => {
    show(...view.home(listing, examples, detail.open, (words) => go({ kind: "text", text: words, k: PAGE })));
    if (said.length > 3) query.placeholder = said[3];
    $("announcer").textContent = "";
  };
}

async function showText(what, signal) {
  const answer = await api.byText(what.text, Math.min(what.k, about.max_k), signal);
  return () => {
    const top = answer.nothing_matches ? view.nothing(answer, what.text) : view.summary(answer, "query", about.calibrated, facts(answer));
    const open = (all, at) => detail.open(all, at, what.text);
    show(top, view.notes(answer), view.hits(answer, open), more(answer));
    $("announcer").textContent = view.spoken(answer, "query");
  };
}

async function showImage(what, signal) {
  const wanted = ["captions", "images"].filter((side) => about[side] > 0);
  const pictures = what.k + (what.like ? 1 : 0); // the nearest to a picture of the collection is itself: left out below
  const sizes = { captions: Math.min(CAPTIONS, about.max_k), images: Math.min(pictures, about.max_k) };
  if (what.like) showAsked(`items/${encodeURIComponent(what.like)}/image`, what.name);
  else showAsked(URL.createObjectURL(what.file), what.name);
  if (what.file?.size > about.max_upload) {
    const words = `${what.name} has ${megabytes(what.file.size)}; this server takes at most ${megabytes(about.max_upload)}.`;
    throw new api.Failure("refused", words);
  }
  const find = (side) => (what.like ? api.alike(what.like, sizes[side], side, signal) : api.byImage(what.file, sizes[side], side, signal));
  const answers = await Promise.all(wanted.map(find));
  for (const answer of answers) answer.hits = answer.hits.filter((hit) => hit.id !== what.like);
  const titles = { captions: "Captions that fit it", images: "Pictures like it" };
  const section = (answer) => [
    view.divider(titles[answer.side], facts(answer)),
    answer.nothing_matches && view.nothing(answer, what.name),
    view.notes(answer),
    view.hits(answer, detail.open),
    answer.side === "images" && more(answer),
  ];
  return () => {
    const top = answers.length && !answers[0].nothing_matches ? view.summary(answers[0], "picture", about.calibrated) : null;
    show(top, ...answers.flatMap(section));
    $("announcer").textContent = answers.map((answer) => view.spoken(answer, "picture")).join(" ");
  };
}

const megabytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
const facts = (answer) => view.facts(answer, about[answer.side]);
const show = (...elements) => results.replaceChildren(...elements.filter(Boolean));

function more(answer) {
  if (answer.hits.length < asked.k || asked.k >= Math.min(about.max_k, about[answer.side])) return null;
  const follow = async () => {
    const place = answer.hits.length;
    asked = { ...asked, k: asked.k + PAGE };
    await ask();
    document.querySelectorAll(".card[data-id]")[place]?.focus();
  };
  return el("button", { class: "button", type: "button", id: "more", onclick: follow }, "Show more");
}

// --- what is shown around the results ---

function greet() {
  const sides = [["images", "picture", "pictures"], ["captions", "caption", "captions"]].filter(([side]) => about[side] > 0);
  const told = sides.map(([side, one, many], place) =>
    el("span", { class: place ? "aside" : "" }, `${place ? ", " : ""}${count(about[side], one, many)}`),
  );
  $("collection").replaceChildren(...(told.length ? told : ["an empty index"]));
}

function showAsked(source, name) {
  if (preview.startsWith("blob:")) URL.revokeObjectURL(preview);
  preview = source;
  $("asked").hidden = !source;
  $("asked-name").textContent = name;
  if (source) $("asked-picture").src = source;
  else $("asked-picture").removeAttribute("src");
}

function fail(error) {
  if (!(error instanceof api.Failure)) throw error;
  if (error.kind === "token") return askToken();
  const titles = { offline: "The server does not answer", busy: "The server is busy", refused: "That did not work" };
  const words = error.kind === "offline" ? "Is it still running? This page tries again by itself." : error.message;
  $("problem").replaceChildren(view.problem(titles[error.kind], words, error.kind === "refused" ? null : ask));
  if (error.kind === "refused") results.replaceChildren();
  results.classList.toggle("stale", error.kind !== "refused");
  if (error.kind === "busy") retry = setTimeout(ask, 1000 * error.retryAfter);
  if (error.kind === "offline") retry = setTimeout(async function again() {
    if (await api.alive()) ask();
    else retry = setTimeout(again, 2000);
  }, 1500);
  return undefined;
}

// --- the address ---

function go(next, { replace = false } = {}) {
  asked = next;
  const address = new URL(location.href);
  address.search = "";
  address.hash = "";
  if (next.kind === "text") address.searchParams.set("q", next.text);
  if (next.like) address.searchParams.set("like", next.like);
  if (address.href !== location.href) history[replace ? "replaceState" : "pushState"](null, "", address);
  reflect();
  ask();
}

function reflect() {
  const image = asked.kind === "image";
  if (asked.kind !== "text") query.value = "";
  else if (query.value.trim() !== asked.text) query.value = asked.text;
  if (!image) showAsked("", "");
  query.hidden = image;
  $("clear").hidden = asked.kind === "home";
  document.body.dataset.kind = asked.kind;
  document.title = asked.kind === "text" ? `${asked.text} · halation` : image ? `${asked.name} · halation` : "halation";
}

function readAddress() {
  const address = new URLSearchParams(location.search);
  const text = (address.get("q") || "").trim();
  const like = address.get("like");
  asked = text ? { kind: "text", text, k: PAGE } : like ? { kind: "image", like, name: like, k: PAGE } : { kind: "home" };
  reflect();
}

function fromAddress() {
  readAddress();
  ask();
}

// --- the token, where the server has one ---

async function askToken() {
  $("token-error").textContent = "";
  if (!$("token").open) $("token").showModal();
}

async function open(token) {
  await api.session(token);
  if ($("token").open) $("token").close();
  ask();
}

$("token").addEventListener("cancel", (event) => event.preventDefault()); // without it there is nothing to see
$("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await open($("token-field").value);
  } catch (error) {
    $("token-error").textContent = error.message;
  }
});

// --- hands on the page ---

const alike = (id) => go({ kind: "image", like: id, name: id, k: PAGE });

function clear() {
  if (asked.kind !== "home" || query.value) go({ kind: "home" });
}

query.addEventListener("input", () => {
  clearTimeout(pause);
  const text = query.value.trim();
  $("clear").hidden = !query.value;
  if (asked.kind === "text" ? text === asked.text : !text) return;
  // the first letter makes a new entry in the history, the following ones change it
  pause = setTimeout(() => go(text ? { kind: "text", text, k: PAGE } : { kind: "home" }, { replace: asked.kind === "text" && Boolean(text) }), PAUSE);
});
$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = query.value.trim();
  if (text && !(asked.kind === "text" && asked.text === text)) go({ kind: "text", text, k: PAGE });
});
$("asked-picture").addEventListener("error", () => $("asked-picture").removeAttribute("src"));
$("clear").addEventListener("click", () => {
  clear();
  query.focus();
});
addEventListener("popstate", fromAddress);
addEventListener("online", ask);
keys.listen({ isBusy, clear });
incoming.listen({ isBusy, take: (file) => go({ kind: "image", file, name: file.name || "a pasted picture", k: PAGE }) });

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  history.replaceState(null, "", location.pathname + location.search); // not to be left in the address
  readAddress();
  open(token).catch(askToken);
} else {
  fromAddress();
}
// where nothing is asked yet, the box waits for words; a phone would push its keyboard over the page
const byTouchOnly = matchMedia("(hover: none) and (pointer: coarse)").matches;
if (asked.kind === "home" && !location.hash && !byTouchOnly) query.focus({ preventScroll: true });
