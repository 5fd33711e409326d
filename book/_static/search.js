// The search page: ranks the sections of the book by a reader's words. Misspelt words, beginnings of words and the
// field's other names for a thing are found too, and the page says where it found them. The index is sections.js.
(() => {
  "use strict";

  const SHOWN = 20;
  const LONGEST = 400; // characters of a question; more than a sentence or two would only take time
  const SNIPPET = 220; // characters
  const WEIGHTS = { title: 6, page: 2, names: 2, text: 1 };
  const BEGINNING = 0.6; // what a word counts that only begins with what was written
  const MEANT = 0.8; // … that is another name for it
  const MISSPELT = 0.5;
  const SMALL = new Set(
    ("a an and are as at be but by can do does for from has have how i if in into is it its me my no not of on or so " +
      "that the then there this to was what when where which why will with you your").split(" "),
  );

  // ---- Words ----

  // As they are written: rotate_half is one.
  function written(text) {
    const plain = text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, "");
    const spelt = plain.replace(/√/g, " sqrt ").replace(/(\d),(?=\d{3})/g, "$1");
    return (spelt.match(/[\p{L}\p{N}]+(?:[_.][\p{L}\p{N}]+)*/gu) ?? []).map(stem);
  }

  const pieces = (word) => (/[_.]/.test(word) ? word.split(/[_.]/).map(stem) : []);

  // And the words within words: rotate, half.
  const words = (text) => written(text).flatMap((word) => [word, ...pieces(word)]);

  // One form for padding, padded and pads, for scale, scales and scaling. It need not be a word.
  function stem(word) {
    if (word.length < 4 || /[_\d]/.test(word)) return word;
    const one = /ss$|us$|is$/.test(word) ? word : word.replace(/ies$/, "y").replace(/s$/, "");
    const short = one.replace(/(...)ing$/, "$1").replace(/(....)ed$/, "$1").replace(/(...)e$/, "$1");
    return short.replace(/([^aeiou])\1$/, "$1");
  }

  // How many letters must be changed, left out, put in or exchanged with the next; more than most: most + 1.
  function distance(a, b, most) {
    if (Math.abs(a.length - b.length) > most) return most + 1;
    let before = [];
    let last = Array.from({ length: b.length + 1 }, (_, j) => j);
    for (let i = 1; i <= a.length; i += 1) {
      const row = [i];
      for (let j = 1; j <= b.length; j += 1) {
        const same = a[i - 1] === b[j - 1] ? 0 : 1;
        row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + same);
        const exchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
        if (exchanged) row[j] = Math.min(row[j], before[j - 2] + 1);
      }
      if (Math.min(...row) > most) return most + 1;
      [before, last] = [last, row];
    }
    return last[b.length];
  }

  // ---- The index ----

  // Of each word, how much it counts in each section.
  function indexed({ pages, sections }) {
    const found = new Map();
    sections.forEach(([page, , title, text, names], place) => {
      const weight = pages[page][2];
      const fields = { title, page: pages[page][1], names, text };
      const counts = new Map();
      for (const [field, content] of Object.entries(fields)) {
        const seen = new Map();
        for (const word of words(content)) seen.set(word, (seen.get(word) ?? 0) + 1);
        const long = field === "title" ? Math.sqrt(4 / Math.max(4, seen.size)) : 1;
        for (const [word, count] of seen) {
          const counted = weight * WEIGHTS[field] * long * (field === "text" ? Math.log2(1 + count) : 1);
          counts.set(word, (counts.get(word) ?? 0) + counted);
        }
      }
      for (const [word, count] of counts) {
        if (!found.has(word)) found.set(word, []);
        found.get(word).push([place, count]);
      }
    });
    return found;
  }

  // What of the index a word may stand for: [word, how much it counts].
  function readings(word, index) {
    if (index.has(word)) return [[word, 1]];
    const all = [...index.keys()];
    const begun = word.length < 3 ? [] : all.filter((other) => other.startsWith(word));
    if (begun.length > 0) return begun.map((other) => [other, BEGINNING]);
    const less = (one) => readings(one, index).map(([other, counts]) => [other, counts * BEGINNING]);
    const longest = all.reduce((most, other) => Math.max(most, other.length), 0);
    if (word.length > longest + 2 && pieces(word).length === 0) return less(word.slice(0, longest + 2));
    if (pieces(word).length > 0) return pieces(word).flatMap(less);
    if (word.length < 4) return [];
    const most = word.length < 8 ? 1 : 2;
    const near = all.map((other) => [other, distance(word, other, most)]).filter(([, off]) => off <= most);
    const least = Math.min(...near.map(([, off]) => off));
    if (near.length > 0) return near.filter(([, off]) => off === least).map(([other]) => [other, MISSPELT]);
    return word.length > 5 ? less(word.slice(0, -1)) : [];
  }

  // The scores of the sections for one word: the best of its readings in each.
  function scores(word, index, size) {
    const found = new Map();
    for (const [other, counts] of readings(word, index)) {
      const postings = index.get(other);
      const rare = Math.log2(1 + size / postings.length);
      for (const [place, count] of postings) {
        found.set(place, Math.max(found.get(place) ?? 0, counts * rare * count));
      }
    }
    return found;
  }

  const question = (text) => text.slice(0, LONGEST).trim();

  // What was asked, in parts: words as they were said, and what is meant by them.
  function parts(query, synonyms) {
    const asked = written(query);
    const joined = ` ${asked.join(" ")} `;
    const known = synonyms
      .map(([said, meant]) => ({ said: written(said), meant: words(meant) }))
      .filter(({ said }) => joined.includes(` ${said.join(" ")} `))
      .sort((a, b) => b.said.length - a.said.length);
    const covered = new Set();
    const found = [];
    for (const { said, meant } of known) {
      if (said.some((word) => covered.has(word))) continue;
      for (const word of said) covered.add(word);
      found.push({ said, meant });
    }
    const rest = asked.filter((word) => !covered.has(word));
    const telling = rest.filter((word) => word.length > 1 && !SMALL.has(word));
    const single = telling.length + found.length > 0 ? telling : rest;
    return [...found, ...[...new Set(single)].map((word) => ({ said: [word], meant: [] }))];
  }

  function total(list, index, size, counts) {
    const found = new Map();
    for (const word of new Set(list)) {
      for (const [place, score] of scores(word, index, size)) {
        found.set(place, (found.get(place) ?? 0) + score * counts);
      }
    }
    return found;
  }

  // The sections, best first: [place in the list, score].
  function ranked(query, data, index) {
    const size = data.sections.length;
    const asked = parts(query, data.synonyms);
    const sums = new Map();
    for (const { said, meant } of asked) {
      const best = total(said, index, size, 1);
      for (const [place, score] of total(meant, index, size, MEANT)) {
        best.set(place, Math.max(best.get(place) ?? 0, score));
      }
      for (const [place, score] of best) {
        const sum = sums.get(place) ?? { score: 0, parts: 0 };
        sums.set(place, { score: sum.score + score, parts: sum.parts + 1 });
      }
    }
    return [...sums]
      .map(([place, sum]) => [place, sum.score * (sum.parts / asked.length) ** 2])
      .sort((a, b) => b[1] - a[1] || a[0] - b[0])
      .slice(0, SHOWN);
  }

  // ---- What is shown ----

  function looked(query, data, index) {
    const all = parts(query, data.synonyms).flatMap(({ said, meant }) => [...said, ...meant]);
    return new Set(all.flatMap((word) => readings(word, index)).map(([word]) => word));
  }

  // The piece of the text with most of the words, cut between words.
  function snippet(text, wanted) {
    const all = [...text.matchAll(/[\p{L}\p{N}_]+/gu)];
    const places = all.filter(([word]) => words(word).some((one) => wanted.has(one))).map(({ index }) => index);
    const within = (start) => places.filter((place) => place >= start && place < start + SNIPPET - 40).length;
    const best = places.reduce((a, b) => (within(b) > within(a) ? b : a), places[0] ?? 0);
    const start = best < 60 ? 0 : text.indexOf(" ", best - 60) + 1;
    const end = start + SNIPPET < text.length ? text.lastIndexOf(" ", start + SNIPPET) : text.length;
    return (start > 0 ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
  }

  if (typeof document === "undefined") {
    globalThis.finding = { words, distance, indexed, question, ranked, snippet, looked };
    return;
  }

  function marked(text, wanted) {
    const node = document.createElement("span");
    for (const piece of text.split(/([\p{L}\p{N}_]+)/u)) {
      const hit = /[\p{L}\p{N}]/u.test(piece) && words(piece).some((one) => wanted.has(one));
      const part = hit ? document.createElement("mark") : document.createTextNode(piece);
      if (hit) part.textContent = piece;
      node.append(part);
    }
    return node;
  }

  function result([place], data, wanted) {
    const [page, anchor, title, text] = data.sections[place];
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = data.pages[page][0] + (anchor ? `#${anchor}` : "");
    link.append(marked(title, wanted));
    const where = document.createElement("span");
    where.className = "search-where";
    where.textContent = anchor ? data.pages[page][1] : "the whole page";
    const said = document.createElement("p");
    said.append(marked(snippet(text, wanted), wanted));
    item.append(link, where, said);
    return item;
  }

  function begin() {
    const data = globalThis.sections;
    const field = document.querySelector("main .bd-search input");
    const list = document.querySelector("#search-results");
    const status = document.querySelector("#search-status");
    const index = indexed(data);

    function search() {
      const query = question(field.value);
      const found = query ? ranked(query, data, index) : [];
      const wanted = looked(query, data, index);
      list.replaceChildren(...found.map((one) => result(one, data, wanted)));
      const none = "Nothing was found. Try fewer words, or look through the Questions.";
      const many = `${found.length === SHOWN ? "The best " : ""}${found.length} places`;
      status.textContent = query && (found.length ? many : none);
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

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
