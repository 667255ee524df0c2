// Light, dark or as the system says. Loaded before the page is drawn, so that no wrong colour flashes.
"use strict";

(() => {
  const KEY = "halation.theme";
  const root = document.documentElement;
  const saved = () => {
    try {
      return localStorage.getItem(KEY) || "auto";
    } catch {
      return "auto"; // storage may be forbidden
    }
  };
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  apply(saved());

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const words = { auto: "as the system", light: "light", dark: "dark" };
    const icons = { auto: "auto", light: "sun", dark: "moon" };
    const next = { auto: "light", light: "dark", dark: "auto" };
    let theme = saved() in words ? saved() : "auto";
    const show = () => {
      button.querySelector("use").setAttribute("href", `#i-${icons[theme]}`);
      const name = `Colours: ${words[theme]}. Change to ${words[next[theme]]}.`;
      button.setAttribute("aria-label", name);
      button.title = name;
    };
    show();
    button.addEventListener("click", () => {
      theme = next[theme];
      apply(theme);
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // it then lasts as long as the page
      }
      show();
    });
  });
})();
