// The light or dark theme, or the system's. Loaded before the page is drawn, so that no wrong colour flashes.
"use strict";

(() => {
  const KEY = "halation.theme", root = document.documentElement;
  const words = { auto: "as in the system", light: "light", dark: "dark" };
  const icons = { auto: "auto", light: "sun", dark: "moon" };
  const next = { auto: "light", light: "dark", dark: "auto" };
  let theme = "auto";
  root.classList.add("js"); // without it, nothing is collapsed
  try {
    theme = localStorage.getItem(KEY) || "auto";
  } catch {
    // storage may be blocked
  }
  if (!(theme in words)) theme = "auto";
  const apply = () => {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
  };
  apply();

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme"), icon = button.querySelector("use");
    const show = () => {
      if (icon) icon.setAttribute("href", `#i-${icons[theme]}`);
      button.title = `Colours: ${words[theme]}. Change to ${words[next[theme]]}.`;
      button.setAttribute("aria-label", button.title);
    };
    show();
    button.addEventListener("click", () => {
      theme = next[theme];
      apply();
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // then the choice lasts only until the page closes
      }
      show();
      dispatchEvent(new Event("recolour")); // canvases must be drawn again
    });
  });
})();
