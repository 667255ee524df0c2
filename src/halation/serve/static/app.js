// The page's state: the current request, its answer, and the address that names it. Late answers are dropped.

import * as api from "./api.js";
import { makeDetail } from "./detail.js";
import { $, count, el } from "./dom.js";
import * as incoming from "./incoming.js";
import * as keys from "./keys.js";
import * as view from "./view.js";

const PAGE = 24; // hits at first, and more with each "Show more"
const CAPTIONS = 5; // shown for a picture that is the query
const PAUSE = 160; // ms after the last key before a search
const SLOW = 120; // ms before the page shows that it is waiting

const query = $("query");
const results = $("results");
let about = null;
let request = { kind: "home" }; // or {kind: "text", text, k} or {kind: "image", file, name, like, k}
let turn = 0; // answers to an earlier turn are not shown
let stop = null;
let pause = 0;
let preview = "";
let retry = 0;

const detail = makeDetail({ findAlike: (hit) => alike(hit.id), explain: api.explain, meaning: () => view.meaning(about?.judge) });
const isBusy = () => detail.isOpen || $("token").open;

// --- requests ---

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
  const wanted = request;
  try {
    about = about || (await api.about());
    if (!now.mine()) return;
    showCounts();
    const find = { home: showHome, text: showText, image: showImage }[wanted.kind];
    const draw = await find(wanted, now.signal);
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
  const captions = listing.items.flatMap((entry) => entry.captions.slice(0, 2)).filter((words) => words.length < 60);
  const examples = [...new Set(captions)].filter((_, position) => position % 5 === 0).slice(0, 4);
  return () => {
    show(...view.home(listing, examples, detail.open, (words) => go({ kind: "text", text: words, k: PAGE })));
    if (captions.length > 3) query.placeholder = captions[3];
    $("announcer").textContent = "";
  };
}

async function showText(wanted, signal) {
  const answer = await api.byText(wanted.text, Math.min(wanted.k, about.max_k), signal);
  return () => {
    const top = answer.verdict === "nothing" ? null : view.summary(answer, "query", about.calibrated, facts(answer));
    const open = (all, at) => detail.open(all, at, wanted.text);
    show(view.verdict(answer, wanted.text), top, view.notes(answer), view.hits(answer, open, about.judge), more(answer));
    $("announcer").textContent = view.spoken(answer, "query");
  };
}

async function showImage(wanted, signal) {
  const sides = ["captions", "images"].filter((side) => about[side] > 0);
  const pictures = wanted.k + (wanted.like ? 1 : 0); // one more: the nearest to a picture of the collection is itself, which is left out below
  const sizes = { captions: Math.min(CAPTIONS, about.max_k), images: Math.min(pictures, about.max_k) };
  if (wanted.like) showQueryPicture(`items/${encodeURIComponent(wanted.like)}/image`, wanted.name);
  else showQueryPicture(URL.createObjectURL(wanted.file), wanted.name);
  if (wanted.file?.size > about.max_upload) {
    const words = `${wanted.name} has ${megabytes(wanted.file.size)}; this server takes at most ${megabytes(about.max_upload)}.`;
    throw new api.Failure("refused", words);
  }
  const find = (side) => (wanted.like ? api.alike(wanted.like, sizes[side], side, signal) : api.byImage(wanted.file, sizes[side], side, signal));
  const answers = await Promise.all(sides.map(find));
  for (const answer of answers) answer.hits = answer.hits.filter((hit) => hit.id !== wanted.like);
  const titles = { captions: "Captions that fit it", images: "Similar pictures" };
  const section = (answer) => [
    view.divider(titles[answer.side], facts(answer)),
    view.verdict(answer, wanted.name),
    view.notes(answer),
    view.hits(answer, detail.open, about.judge),
    answer.side === "images" && more(answer),
  ];
  return () => {
    const top = answers.length && answers[0].verdict !== "nothing" ? view.summary(answers[0], "picture", about.calibrated) : null;
    show(top, ...answers.flatMap(section));
    $("announcer").textContent = answers.map((answer) => view.spoken(answer, "picture")).join(" ");
  };
}

const megabytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
const facts = (answer) => view.facts(answer, about[answer.side]);
const show = (...elements) => results.replaceChildren(...elements.filter(Boolean));

function more(answer) {
  if (answer.hits.length < request.k || request.k >= Math.min(about.max_k, about[answer.side])) return null;
  const follow = async () => {
    const firstNew = answer.hits.length;
    request = { ...request, k: request.k + PAGE };
    await ask();
    document.querySelectorAll(".card[data-id]")[firstNew]?.focus();
  };
  return el("button", { class: "button", type: "button", id: "more", onclick: follow }, "Show more");
}

// --- what is shown around the results ---

function showCounts() {
  const sides = [["images", "picture", "pictures"], ["captions", "caption", "captions"]].filter(([side]) => about[side] > 0);
  const counts = sides.map(([side, one, many], position) =>
    el("span", { class: position ? "aside" : "" }, `${position ? ", " : ""}${count(about[side], one, many)}`),
  );
  $("collection").replaceChildren(...(counts.length ? counts : ["an empty index"]));
}

function showQueryPicture(source, name) {
  if (preview.startsWith("blob:")) URL.revokeObjectURL(preview);
  preview = source;
  $("query-chip").hidden = !source;
  $("query-name").textContent = name;
  if (source) $("query-picture").src = source;
  else $("query-picture").removeAttribute("src");
}

function fail(error) {
  if (!(error instanceof api.Failure)) throw error;
  if (error.kind === "token") return askToken();
  const titles = { offline: "The server does not answer", busy: "The server is busy", refused: "That did not work" };
  const words = error.kind === "offline" ? "Is it still running? This page keeps trying." : error.message;
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
  request = next;
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
  const image = request.kind === "image";
  if (request.kind !== "text") query.value = "";
  else if (query.value.trim() !== request.text) query.value = request.text;
  if (!image) showQueryPicture("", "");
  query.hidden = image;
  $("clear").hidden = request.kind === "home";
  document.body.dataset.kind = request.kind;
  document.title = request.kind === "text" ? `${request.text} · halation` : image ? `${request.name} · halation` : "halation";
}

function readAddress() {
  const address = new URLSearchParams(location.search);
  const text = (address.get("q") || "").trim();
  const like = address.get("like");
  request = text ? { kind: "text", text, k: PAGE } : like ? { kind: "image", like, name: like, k: PAGE } : { kind: "home" };
  reflect();
}

function fromAddress() {
  readAddress();
  ask();
}

// --- the token, if the server needs one ---

async function askToken() {
  $("token-error").textContent = "";
  if (!$("token").open) $("token").showModal();
}

async function open(token) {
  await api.session(token);
  if ($("token").open) $("token").close();
  ask();
}

$("token").addEventListener("cancel", (event) => event.preventDefault()); // without a token there is nothing to show
$("token-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await open($("token-field").value);
  } catch (error) {
    $("token-error").textContent = error.message;
  }
});

// --- mouse, keyboard and files ---

const alike = (id) => go({ kind: "image", like: id, name: id, k: PAGE });

function clear() {
  if (request.kind !== "home" || query.value) go({ kind: "home" });
}

query.addEventListener("input", () => {
  clearTimeout(pause);
  const text = query.value.trim();
  $("clear").hidden = !query.value;
  if (request.kind === "text" ? text === request.text : !text) return;
  // the first letter adds an entry to the history, the next ones replace it
  pause = setTimeout(() => go(text ? { kind: "text", text, k: PAGE } : { kind: "home" }, { replace: request.kind === "text" && Boolean(text) }), PAUSE);
});
$("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = query.value.trim();
  if (text && !(request.kind === "text" && request.text === text)) go({ kind: "text", text, k: PAGE });
});
$("query-picture").addEventListener("error", () => $("query-picture").removeAttribute("src"));
$("clear").addEventListener("click", () => {
  clear();
  query.focus();
});
addEventListener("popstate", fromAddress);
addEventListener("online", ask);
keys.listen({ isBusy, clear });
incoming.listen({ isBusy, take: (file) => go({ kind: "image", file, name: file.name || "pasted picture", k: PAGE }) });

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  history.replaceState(null, "", location.pathname + location.search); // do not leave the token in the address
  readAddress();
  open(token).catch(askToken);
} else {
  fromAddress();
}
// on the start page, focus the search box; not on phones, where the keyboard would cover the page
const byTouchOnly = matchMedia("(hover: none) and (pointer: coarse)").matches;
if (request.kind === "home" && !location.hash && !byTouchOnly) query.focus({ preventScroll: true });
