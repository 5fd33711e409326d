// The search page: readers type words into the field, and the list shows the pages that match. The index is in
// sections.js.
import { indexed, LONGEST, question, ranked, SHOWN, snippet, split, words } from "./ranking.js";

function marked(text, terms) {
  const node = document.createElement("span");
  for (const { piece, hit } of split(text, terms)) {
    const part = hit ? document.createElement("mark") : document.createTextNode(piece);
    if (hit) part.textContent = piece;
    node.append(part);
  }
  return node;
}

// A section's anchor. The index leaves it out, writing 0, if it follows from the title (`slug` in finding.py).
function anchorOf([, anchor, title]) {
  if (anchor !== 0) return anchor;
  return title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
}

function linked(place, data, terms) {
  const [page, , title] = data.sections[place];
  const anchor = anchorOf(data.sections[place]);
  const link = document.createElement("a");
  link.href = data.pages[page][0] + (anchor ? `#${anchor}` : "");
  link.append(marked(title, terms));
  return link;
}

function further(places, data, terms) {
  const list = document.createElement("ul");
  list.className = "search-more";
  for (const place of places) {
    const item = document.createElement("li");
    item.append(linked(place, data, terms));
    list.append(item);
  }
  return list;
}

function result({ place, more }, data, terms) {
  const [page, , , text] = data.sections[place];
  const item = document.createElement("li");
  const where = document.createElement("span");
  where.className = "search-where";
  where.textContent = anchorOf(data.sections[place]) ? data.pages[page][1] : "the whole page";
  const said = document.createElement("p");
  said.append(marked(snippet(text, terms), terms));
  item.append(linked(place, data, terms), where, said);
  if (more.length > 0) item.append(further(more, data, terms));
  return item;
}

function summary({ list, weak }) {
  if (list.length === 0) return "Nothing was found. Try fewer words, or look through the Questions.";
  if (weak) return "Few good matches. Try other words, or look through the Questions.";
  return `${list.length === SHOWN ? "The best " : ""}${list.length} page${list.length === 1 ? "" : "s"}`;
}

function begin() {
  const data = globalThis.sections;
  const field = document.querySelector("main .bd-search input");
  const list = document.querySelector("#search-results");
  const status = document.querySelector("#search-status");
  const index = indexed(data);

  function search() {
    const query = question(field.value);
    const found = ranked(query, data, index);
    list.replaceChildren(...found.list.map((one) => result(one, data, found.terms)));
    status.textContent = query && summary(found);
    history.replaceState(null, "", query ? `?${new URLSearchParams({ q: query })}` : location.pathname);
  }

  field.maxLength = LONGEST;
  field.value = new URL(location.href).searchParams.get("q") ?? "";
  field.addEventListener("input", search);
  field.form.addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  search();
  field.focus();
}

if (typeof document === "undefined") {
  globalThis.finding = { anchorOf, indexed, question, ranked, snippet, split, summary, words };
} else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
