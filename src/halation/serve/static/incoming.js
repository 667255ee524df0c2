// Pictures that are dropped, pasted or chosen.

import { $ } from "./dom.js";

export function listen({ isBusy, take }) {
  const overlay = $("drop");
  const file = $("file");
  let depth = 0; // drags enter children before they leave parents

  const carriesFile = (event) => [...(event.dataTransfer?.types || [])].includes("Files");
  const hide = () => {
    depth = 0;
    overlay.hidden = true;
  };

  addEventListener("dragenter", (event) => {
    if (!carriesFile(event) || isBusy()) return;
    depth += 1;
    overlay.hidden = false;
  });
  addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (depth === 0) overlay.hidden = true;
  });
  addEventListener("dragover", (event) => {
    if (carriesFile(event)) event.preventDefault(); // otherwise the browser opens the file
  });
  addEventListener("drop", (event) => {
    if (!carriesFile(event)) return;
    event.preventDefault();
    hide();
    if (event.dataTransfer.files.length && !isBusy()) take(event.dataTransfer.files[0]);
  });
  addEventListener("paste", (event) => {
    const pasted = [...(event.clipboardData?.files || [])].find((one) => one.type.startsWith("image/"));
    if (!pasted || isBusy()) return;
    event.preventDefault();
    take(pasted);
  });
  $("choose").addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    if (file.files.length) take(file.files[0]);
    file.value = ""; // so that the same file can be chosen again
  });
}
