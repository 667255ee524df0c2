// Keys: / goes to the search box, arrows move through the results, Esc goes back a step.

import { $ } from "./dom.js";

const targets = () => [...document.querySelectorAll(".card[data-id], .tile, .chip")];

export function move(from, key) {
  const all = targets();
  const at = all.indexOf(from);
  if (at < 0) return null;
  if (key === "ArrowRight") return all[at + 1] || null;
  if (key === "ArrowLeft") return all[at - 1] || null;
  if (key === "Home") return all[0];
  if (key === "End") return all[all.length - 1];
  // up and down: the nearest row in that direction, and in it the nearest centre
  const start = from.getBoundingClientRect();
  const centre = start.left + start.width / 2;
  const down = key === "ArrowDown";
  const beyond = all
    .map((node) => ({ node, box: node.getBoundingClientRect() }))
    .filter(({ box }) => (down ? box.top >= start.bottom - 2 : box.bottom <= start.top + 2));
  if (!beyond.length) return down ? null : $("query");
  const edge = down ? Math.min(...beyond.map(({ box }) => box.top)) : Math.max(...beyond.map(({ box }) => box.bottom));
  const row = beyond.filter(({ box }) => Math.abs((down ? box.top : box.bottom) - edge) < 12);
  row.sort((a, b) => Math.abs(a.box.left + a.box.width / 2 - centre) - Math.abs(b.box.left + b.box.width / 2 - centre));
  return row[0].node;
}

export function listen({ isBusy, clear }) {
  const query = $("query");
  document.addEventListener("keydown", (event) => {
    if (isBusy() || event.ctrlKey || event.metaKey || event.altKey) return;
    const { target, key } = event;
    const typing = target === query;
    if (key === "/" && !typing) {
      event.preventDefault();
      query.focus();
      query.select();
    } else if (key === "Escape") {
      event.preventDefault();
      if (typing || target === document.body) clear();
      query.focus();
    } else if (typing && key === "ArrowDown") {
      const first = targets()[0];
      if (first) {
        event.preventDefault();
        first.focus();
      }
    } else if (!typing && /^(Arrow|Home|End)/.test(key)) {
      const next = move(target, key);
      if (next) {
        event.preventDefault();
        next.focus();
        next.scrollIntoView({ block: "nearest" });
      }
    }
  });
}
