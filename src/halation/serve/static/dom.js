// Elements made without HTML strings, so that a caption can never become markup.

export const $ = (id) => document.getElementById(id);

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return node;
}

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

export const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export function sentence(words) {
  if (!words) return "";
  const whole = words[0].toUpperCase() + words.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

// datasets' captions often have a space before the full stop
export const tidy = (caption) => caption.replace(/\s+([.,;:!?])/g, "$1");
