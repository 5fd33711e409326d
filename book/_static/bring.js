// Buttons in the text. Each moves a live figure to just below its paragraph and sets the figure's dials as the
// paragraph describes. Another button moves the figure back.
(() => {
  "use strict";

  // Keep the element that the reader has just used in the same place in the window, whatever else moves. The browser's
  // own scroll anchoring is switched off meanwhile, because it would correct the position a second time.
  function steady(element, change) {
    const root = document.documentElement;
    const before = element.getBoundingClientRect().top;
    root.style.overflowAnchor = "none";
    change();
    window.scrollBy({ top: element.getBoundingClientRect().top - before, behavior: "instant" });
    requestAnimationFrame(() => requestAnimationFrame(() => root.style.removeProperty("overflow-anchor")));
  }

  function made(type, className, ...inside) {
    const element = document.createElement(type);
    element.className = className;
    element.append(...inside);
    return element;
  }

  // In the figure's original place, a note says where the figure is now, and a button brings the figure back.
  const homes = new WeakMap();
  function homeOf(figure) {
    if (!homes.has(figure)) {
      const where = made("a", "");
      const back = made("button", "bring", "Bring it back here");
      back.type = "button";
      const home = made("p", "bring-home noprint", "The figure that belongs here is now at ", where, ". ", back);
      home.hidden = true;
      figure.before(home);
      back.addEventListener("click", () => {
        steady(home.closest("section").firstElementChild, () => { // its heading, because the note itself disappears
          home.hidden = true;
          home.after(figure);
        });
        figure.querySelector("button, input, select")?.focus({ preventScroll: true });
      });
      homes.set(figure, { home, where });
    }
    return homes.get(figure);
  }

  function bring(button, figure) {
    const section = button.closest("section");
    const { home, where } = homeOf(figure);
    where.href = `#${section.id}`;
    where.textContent = `“${section.querySelector("h1, h2, h3, h4").firstChild.textContent.trim()}”`;
    steady(button, () => {
      home.hidden = false;
      button.closest("p, li").after(figure);
    });
    const { begin, reveal } = figure.ropebook.el.ropebook;
    begin(button.dataset.dials);
    reveal();
  }

  for (const button of document.querySelectorAll("button.bring")) {
    const figure = document.querySelector(`.explorer[data-explorer="${button.dataset.explorer}"]`);
    if (!figure) continue;
    button.hidden = false;
    button.addEventListener("click", () => figure.ropebook && bring(button, figure));
  }
})();
