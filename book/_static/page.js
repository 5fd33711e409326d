// The script on every page of the site. It follows addresses that have moved, marks the reader's place in "On this
// page", and shows the meanings of terms. It also gives labels and tab stops to elements for which the theme provides
// none.
(() => {
  "use strict";

  // ---- Addresses that have moved ----

  // A reader may have typed a % that is not part of an encoding.
  function decoded(fragment) {
    try {
      return decodeURIComponent(fragment);
    } catch {
      return fragment;
    }
  }

  // The new address of a fragment, or undefined. A fragment is the id of a heading or an equation, or the dials of
  // explorers: #name.dial=value&…. The first explorer decides on the page, and each gets its new name. Only the table's
  // own entries count, not properties that every object has.
  function targetOf(fragment, moved) {
    if (Object.hasOwn(moved, fragment)) return moved[fragment];
    const entries = fragment.split("&").map((entry) => {
      const name = entry.replace(/\.[^.=]*=.*$/s, "");
      const [page, newName = name] = name !== entry && Object.hasOwn(moved, name) ? moved[name].split("#") : [""];
      return { page, text: newName + entry.slice(name.length) };
    });
    const renamed = entries.map(({ text }) => text).join("&");
    return entries[0].page || renamed !== fragment ? `${entries[0].page}#${renamed}` : undefined;
  }

  if (typeof document === "undefined") {
    globalThis.page = { decoded, targetOf };
    return;
  }

  function followMoved() {
    const table = document.getElementById("moved");
    const fragment = decoded(location.hash.slice(1));
    const target = table && fragment && targetOf(fragment, JSON.parse(table.textContent));
    if (target) location.replace(target);
  }

  // ---- On this page ----

  function outline(nav) {
    nav.id = "page-outline"; // if it kept the theme's id, the theme would mark entries as well, and too late
    const entries = [...nav.querySelectorAll("a[href^='#']")]
      .map((link) => ({ link, heading: document.getElementById(decodeURIComponent(link.hash.slice(1))) }))
      .filter(({ heading }) => heading);
    let asked = null; // the heading to which a link led, until the reader scrolls on
    let arrived = null; // the scroll position to which this link led
    let waiting = false;

    function here() {
      if (asked && arrived !== null && Math.abs(scrollY - arrived) > 2) asked = null;
      if (asked) return asked;
      if (scrollY === 0) return undefined; // at the top nothing is marked, so opening a page needs no measuring
      const line = innerHeight * 0.3;
      const passed = entries.filter(({ heading }) => heading.getBoundingClientRect().top <= line);
      const atEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
      return atEnd ? entries.at(-1) : passed.at(-1);
    }

    function mark() {
      waiting = false;
      const now = here();
      for (const { link } of entries) {
        if (link === now?.link) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
        link.classList.toggle("active", link === now?.link);
      }
      for (const item of nav.querySelectorAll(".toc-entry")) {
        item.classList.toggle("active", Boolean(now) && item.contains(now.link));
      }
      if (now) bringIntoList(now.link);
    }

    // Scroll only the list. If the list is folded, scrollIntoView would also move the page, and the reader would lose
    // the place. A folded list shows only its heading.
    function bringIntoList(link) {
      const list = nav.closest(".bd-sidebar-secondary");
      if (!list) return;
      if (list.matches(".hide:not(:hover, :focus-within)")) {
        list.scrollTop = 0;
        return;
      }
      const [item, frame] = [link, list].map((one) => one.getBoundingClientRect());
      list.scrollTop += Math.min(0, item.top - frame.top) + Math.max(0, item.bottom - frame.bottom);
    }

    function soon() {
      if (!waiting) requestAnimationFrame(mark);
      waiting = true;
    }

    function jumped() {
      asked = entries.find(({ link }) => link.hash === location.hash) ?? null;
      arrived = null;
      setTimeout(() => { arrived = scrollY; }, 1000);
      soon();
    }

    const leave = () => { asked = null; };
    addEventListener("wheel", leave, { passive: true });
    addEventListener("touchmove", leave, { passive: true });
    addEventListener("keydown", leave);
    addEventListener("pointerdown", leave);
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    addEventListener("hashchange", jumped);
    nav.addEventListener("click", (event) => {
      if (event.target.closest("a")?.hash === location.hash) jumped(); // in this case there is no hashchange event
    });
    jumped();
  }

  // ---- Terms ----

  const GAP = 6;

  function place(meaning, link) {
    const at = link.getClientRects()[0];
    const { width, height } = meaning.getBoundingClientRect();
    const below = at.bottom + GAP + height <= innerHeight || at.top < height + GAP;
    meaning.style.inset = "auto";
    meaning.style.margin = "0";
    meaning.style.left = `${Math.max(GAP, Math.min(at.left, document.documentElement.clientWidth - width - GAP))}px`;
    meaning.style.top = `${below ? at.bottom + GAP : at.top - GAP - height}px`;
  }

  function explain(link) {
    const meaning = document.getElementById(`meaning-${link.hash.slice(1)}`);
    if (!meaning?.showPopover) return;
    let timer = 0;
    const show = () => {
      clearTimeout(timer);
      if (meaning.matches(":popover-open")) return;
      meaning.showPopover();
      place(meaning, link);
    };
    const later = (what, ms) => {
      clearTimeout(timer);
      timer = setTimeout(what, ms);
    };
    // The delay gives readers time to move the pointer into the text.
    const hide = () => later(() => {
      if (!meaning.matches(":hover") && !link.matches(":hover, :focus-visible")) meaning.hidePopover();
    }, 200);
    link.setAttribute("aria-describedby", meaning.id);
    link.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") later(show, 250); });
    link.addEventListener("pointerleave", hide);
    meaning.addEventListener("pointerleave", hide);
    link.addEventListener("focus", () => { if (link.matches(":focus-visible")) show(); });
    link.addEventListener("blur", hide);
    addEventListener("scroll", () => meaning.matches(":popover-open") && meaning.hidePopover(), { passive: true });
  }

  // Browsers don't do this by themselves for a popover that was opened by a script rather than by a click.
  function closeByEscape(event) {
    if (event.key === "Escape") document.querySelector(".meaning:popover-open")?.hidePopover();
  }

  // ---- Labels and tab stops ----

  // In the book's list of pages, each arrow shows the pages under a chapter.
  function nameArrows() {
    for (const summary of document.querySelectorAll(".bd-links summary")) {
      const chapter = summary.closest("li").querySelector("a").textContent.trim();
      summary.setAttribute("aria-label", `Pages under ${chapter}`);
    }
  }

  function nameCopyButtons() {
    for (const button of document.querySelectorAll(".copybtn")) button.setAttribute("aria-label", "Copy this code");
  }

  // A box that scrolls must be reachable with the keyboard. For any other box, a tab stop would only be in the way. We
  // measure boxes only after the browser has laid them out. The theme measures them after each change of a figure
  // instead, which forces a layout of the whole page.
  function watchBoxes() {
    const watcher = new ResizeObserver((entries) => {
      for (const { target } of entries) {
        const scrolls = target.scrollWidth > target.clientWidth + 1 || target.scrollHeight > target.clientHeight + 1;
        const caption = target.querySelector("caption")?.textContent ?? "Table";
        // A table within the text scrolls without a box around it, and must keep its role as a table.
        const region = target.matches(".table-box") ? { role: "region", "aria-label": caption } : {};
        for (const [name, value] of Object.entries({ tabindex: "0", ...region })) {
          if (scrolls) target.setAttribute(name, value);
          else target.removeAttribute(name);
        }
      }
    });
    const boxes = ".table-box, table.table, pre, .cell_output > .output, .ledger-entry dd p";
    for (const box of document.querySelectorAll(boxes)) watcher.observe(box);
  }

  followMoved();
  addEventListener("hashchange", followMoved);
  const nav = document.getElementById("pst-page-toc-nav");
  if (nav) outline(nav);
  document.querySelectorAll("a[href*='#term-']:has(> .std-term)").forEach(explain);
  addEventListener("keydown", closeByEscape);
  addEventListener("DOMContentLoaded", nameCopyButtons); // an earlier script creates the buttons at that time
  nameArrows();
  watchBoxes();
})();
