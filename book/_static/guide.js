// The field guide's table. Readers can sort its rows by a column, and filter them by words and by lists. Without this
// script it is a plain table. Cells are sorted by data-sort. A cell without data-sort is unknown and comes last.
(() => {
  "use strict";

  const LISTS = ["for", "pairs"]; // the columns that have a list to filter by
  const FIRST = 15; // the number of cards that a phone shows until the reader asks for all

  // Compares two cells in rising or falling order. Numbers are compared as numbers. Unknown cells come last in both
  // orders.
  function compared(a, b, falling) {
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
    const [x, y] = [Number(a), Number(b)];
    const rise = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
    return falling ? -rise : rise;
  }

  // Whether every word occurs somewhere in the row.
  function holds(text, asked) {
    const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
    return words.every((word) => text.toLowerCase().includes(word));
  }

  if (typeof document === "undefined") {
    globalThis.guide = { compared, holds };
    return;
  }

  function made(tag, text, given = {}) {
    const node = document.createElement(tag);
    if (text) node.textContent = text;
    for (const [name, value] of Object.entries(given)) node.setAttribute(name, value);
    return node;
  }

  function labelled(text, control) {
    const label = made("label", `${text} `);
    label.append(control);
    return label;
  }

  function choice(first, options) {
    const select = made("select");
    select.append(made("option", first, { value: "" }));
    for (const option of options) select.append(made("option", option, { value: option }));
    return select;
  }

  function equip(guide) {
    const [head] = guide.querySelectorAll("thead tr");
    const body = guide.querySelector("tbody");
    const rows = [...body.rows].map((row, place) => ({
      row,
      place,
      keys: [row.cells[0].textContent.toLowerCase(), ...[...row.cells].slice(1).map((cell) => cell.dataset.sort)],
      cells: [...row.cells].map((cell) => cell.textContent.replace(/[†*]+$/, "")),
      text: row.textContent,
    }));
    const names = [...head.cells].map((cell) => cell.textContent);
    const words = made("input", "", { type: "search", autocomplete: "off" });
    const lists = LISTS.map((name) => {
      const column = names.indexOf(name);
      const options = [...new Set(rows.map(({ cells }) => cells[column]))].sort();
      return { column, select: choice("all", options), name };
    });
    const order = choice("as listed", names);
    const turn = made("button", "Reverse", { type: "button" });
    const count = made("p", "", { role: "status", class: "guide-count" });
    const all = made("button", "", { type: "button", class: "guide-rest-button noprint" });
    let sorted = -1;
    let falling = false;

    // Marks the rows that a phone leaves out at first.
    function shorten() {
      const shown = [...body.rows].filter((row) => !row.hidden);
      shown.forEach((row, k) => row.classList.toggle("guide-rest", k >= FIRST));
      all.textContent = `Show all ${shown.length}`;
      all.hidden = shown.length <= FIRST || guide.classList.contains("guide-whole");
    }

    function filter() {
      let shown = 0;
      for (const { row, cells, text } of rows) {
        const chosen = lists.every(({ column, select }) => !select.value || cells[column] === select.value);
        row.hidden = !(chosen && holds(text, words.value));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = `${shown} of ${rows.length} checkpoints`;
      shorten();
    }

    function sort(column, falls) {
      [sorted, falling] = [column, falls];
      const ordered = [...rows].sort((a, b) =>
        (column < 0 ? 0 : compared(a.keys[column], b.keys[column], falls)) || a.place - b.place);
      body.append(...ordered.map(({ row }) => row));
      [...head.cells].forEach((cell, k) => {
        if (k === column) cell.setAttribute("aria-sort", falls ? "descending" : "ascending");
        else cell.removeAttribute("aria-sort");
      });
      order.value = column < 0 ? "" : names[column];
      turn.disabled = column < 0;
      shorten();
    }

    [...head.cells].forEach((cell, column) => {
      const button = made("button", cell.textContent, { type: "button" });
      button.addEventListener("click", () => sort(column, column === sorted && !falling));
      cell.replaceChildren(button);
    });
    order.addEventListener("change", () => sort(names.indexOf(order.value), false));
    turn.addEventListener("click", () => sort(sorted, !falling));
    words.addEventListener("input", filter);
    for (const { select } of lists) select.addEventListener("change", filter);

    const controls = made("div", "", { class: "guide-controls", role: "group", "aria-label": "Choose and sort rows" });
    controls.append(labelled("find", words), ...lists.map(({ name, select }) => labelled(name, select)));
    // On a phone the column headings are hidden, so readers need a list to sort by.
    const sorting = made("span", "", { class: "guide-sorting" });
    sorting.append(labelled("sort by", order), turn);
    controls.append(sorting);
    guide.prepend(controls, count);
    guide.querySelector(".table-box").after(all);
    all.addEventListener("click", () => {
      const next = body.querySelector(".guide-rest:not([hidden]) th a");
      guide.classList.add("guide-whole");
      shorten();
      next.focus(); // the button is gone, so the keyboard goes on with the first card that it brought
    });
    sort(-1, false);
    filter();
  }

  // The sources of a row are in a folded box. A link to one of them opens the box.
  function unfold() {
    const target = document.getElementById(location.hash.slice(1));
    const folded = target?.closest(".guide-origins details");
    if (!folded) return;
    folded.open = true;
    target.scrollIntoView({ block: "center" });
  }

  document.querySelectorAll(".guide").forEach(equip);
  if (document.querySelector(".guide-origins")) {
    addEventListener("hashchange", unfold);
    unfold();
  }
})();
