// Find the pages of the book that match a reader's query, best first, each with its best sections. MiniSearch finds and
// weights words (BM25), and Porter's stemmer reduces scale, scales and scaling to the same form. This file works out
// what a query means and how much of it each section covers.
import MiniSearch from "minisearch";
import { stemmer } from "stemmer";

const SHOWN = 20; // the number of pages shown
const MORE = 3; // the number of further sections listed for each page, …
const GOOD = 0.75; // … if they cover at least this share of what the page's best section covers
const FEW = 5; // the number of pages shown if none of them is a good match
const LONGEST = 400; // maximum number of characters in a query; anything beyond a sentence or two would only take time
const SNIPPET = 220; // the number of characters in an excerpt
const BOOST = { title: 3, page: 2.5, keywords: 2, names: 2, text: 0.5 };
const OWN = Object.keys(BOOST).filter((field) => field !== "keywords");
const BM25 = { k: 1.2, b: 0.5, d: 0.5 }; // b: low, because a long section is no worse for being long
const BEGINNING = 0.6; // weight of a word that merely begins with the reader's word
const MISSPELT = 0.5;
const MEANT = 0.8; // weight of another name for the same thing …
const MEANT_TOO = 0.5; // … and its weight if the book also uses the reader's own word
const ABOUT = 0.9; // limit for the score of a name that is only a keyword, relative to the best section with it
const ADJACENT = 0.3; // bonus if all adjacent words of the query are also adjacent in a section …
const LOOKED_AT = 80; // … which is checked only for this many of the best sections
const WHOLE = 1.5; // exponent of the share of the query that a section covers
const TAILS = /^(Further reading|Summary|Exercises?)\b/; // these sections repeat what was said before
const TAIL = 0.6;

// ---- Words ----

const WORD = /\beq(?:-[\p{L}\p{N}]+)+|[\p{L}\p{N}]+(?:[_.][\p{L}\p{N}]+)*/gu;
const isName = (word) => /[_.]|^eq-/.test(word);

// Reduce two spellings to one: normalize is normalise, neighbour is neighbor, centre is center.
const spelt = (word) =>
  word
    .replace(/([iy])z(e|e[drs]|ers|ing|ations?)$/, "$1s$2")
    .replace(/(.{3})our(s|ed|ing|hoods?|al)?$/, "$1or$2")
    .replace(/(.{2})tre([sd]?)$/, "$1ter$2");

const stems = new Map(); // a cache, because the same words occur again and again
function stem(word) {
  if (/[\d_.-]/.test(word)) return word;
  if (!stems.has(word)) stems.set(word, stemmer(spelt(word)).replace(/(.{4})i$/, "$1")); // symmetry like symmetric
  return stems.get(word);
}

// Words that say nothing about the subject of a query.
const SMALL = new Set(
  ("a an and are as at be but by can do does for from has have how i if in into is it its me my no not of on or so " +
    "that the then there this to was what when where which why will with you your").split(" ").map(stem),
);
const telling = (word) => word.length > 1 && !SMALL.has(word);

// The words as written: rotate_half is a single word, and 10,000 is 10000.
function spoken(text) {
  const plain = text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "");
  const told = plain.replace(/√/g, " sqrt ").replace(/(\d),(?=\d{3})/g, "$1");
  return told.match(WORD) ?? [];
}

const written = (text) => spoken(text).map(stem);

const pieces = (word) => (isName(word) ? word.split(/[_.-]/).filter(Boolean).map(stem) : []);

// The words as written, followed by the words within them: rotate, half.
const words = (text) => written(text).flatMap((word) => [word, ...pieces(word)]);

// ---- The index ----

function indexed({ pages, sections }) {
  const index = new MiniSearch({
    fields: Object.keys(BOOST),
    tokenize: words,
    processTerm: (term) => term,
    searchOptions: {
      tokenize: (word) => [word],
      boost: BOOST,
      bm25: BM25,
      boostDocument: (place) => pages[sections[place][0]][2] * (TAILS.test(sections[place][2]) ? TAIL : 1),
    },
  });
  const entry = ([page, , title, text, names = ""], id) => {
    const [, whole, , keywords] = pages[page];
    return { id, title, page: whole, keywords, names, text };
  };
  index.addAll(sections.map(entry));
  return index;
}

// Results for the word with any two adjacent letters swapped.
function exchanged(word, index) {
  const others = [...word].slice(1).map((_, i) => word.slice(0, i) + word[i + 1] + word[i] + word.slice(i + 2));
  return others.flatMap((other) => index.search(other));
}

// Results for sections that write the word as two words. The stem of finetuning is finetun, but that of tuning is tune.
function parted(word, index) {
  for (let i = 2; i < word.length - 2; i++) {
    const rest = word.slice(i);
    const second = new Map([rest, `${rest}e`].flatMap((part) => index.search(part)).map((one) => [one.id, one]));
    const both = index.search(stem(word.slice(0, i))).filter(({ id }) => second.has(id));
    if (both.length === 0) continue;
    return both.map(({ id, score, terms }) => {
      const other = second.get(id);
      return { id, score: score + other.score, terms: [...terms, ...other.terms] };
    });
  }
  return [];
}

// Results for a name: first the sections that contain it, then the pages that are about it.
function named(name, index) {
  const there = new Set(index.search(name, { fields: OWN }).map(({ id }) => id));
  const found = index.search(name);
  const [first] = found.filter(({ id }) => there.has(id)); // the best result
  const less = (one) => ({ ...one, score: Math.min(one.score, ABOUT * first.score) });
  return first ? found.map((one) => (there.has(one.id) ? one : less(one))) : found;
}

// The sections that match a word, and how well they match. The weight `counts` is less than 1 if they don't contain the
// reader's own word, and `near` says whether they contain at least a similar one.
function lookedUp(word, index) {
  const exact = isName(word) ? named(word, index) : index.search(word);
  if (exact.length > 0) return { found: exact, counts: 1, near: true };
  const ways = [
    [3, BEGINNING, true, () => index.search(word, { prefix: true })],
    [4, MISSPELT, true, () => exchanged(word, index)],
    [4, MISSPELT, word.length > 5, () => index.search(word, { fuzzy: 1 })],
    [6, MEANT, true, () => parted(word, index)],
    [7, MISSPELT, false, () => index.search(word, { fuzzy: 2 })],
    [0, BEGINNING, false, () => pieces(word).flatMap((piece) => lookedUp(piece, index).found)],
  ];
  for (const [shortest, counts, near, way] of ways) {
    const found = word.length < shortest ? [] : way();
    if (found.length > 0) return { found, counts, near };
  }
  return { found: [], counts: 0, near: false };
}

// ---- Questions ----

const question = (text) => text.slice(0, LONGEST).trim();

// Whether a text contains these words in this order, one right after the other.
const stands = (list, text) => ` ${text.join(" ")} `.includes(` ${list.join(" ")} `);

const pairs = (list) => list.slice(1).map((word, i) => [list[i], word]);

// Split a query into parts. Each part has the words as the reader wrote them (`said`) and the book's words for them
// (`meant`).
function parts(query, synonyms, index) {
  const asked = written(query);
  const known = synonyms
    .map(([said, meant]) => ({ said: written(said), meant: words(meant) }))
    .filter(({ said }) => stands(said, asked))
    .sort((a, b) => b.said.length - a.said.length);
  const joined = pairs(spoken(query)).map((pair) => ({ said: pair.map(stem), meant: [stem(pair.join(""))] }));
  known.push(...joined.filter(({ said, meant }) => said.every(telling) && index.search(meant[0]).length > 0));
  const covered = new Set();
  const found = [];
  for (const { said, meant } of known) {
    if (said.some((word) => covered.has(word))) continue;
    for (const word of said) covered.add(word);
    found.push({ said, meant });
  }
  const rest = asked.filter((word) => !covered.has(word));
  const some = rest.filter(telling);
  const single = some.length + found.length > 0 ? some : rest;
  return [...found, ...[...new Set(single)].map((word) => ({ said: [word], meant: [] }))];
}

// The sections' scores for a list of words, the terms found in them, and whether the words were found exactly or
// nearly.
function total(list, index) {
  const sums = new Map();
  const all = [...new Set(list)].map((word) => lookedUp(word, index));
  for (const { found, counts } of all) {
    const best = new Map();
    for (const { id, score } of found) best.set(id, Math.max(best.get(id) ?? 0, score));
    for (const [id, score] of best) sums.set(id, (sums.get(id) ?? 0) + score * counts);
  }
  const terms = all.flatMap(({ found }) => found.flatMap((one) => one.terms));
  return { sums, terms, exact: all.every(({ counts }) => counts === 1), near: all.every(({ near }) => near) };
}

// The sections' scores for one part of the query. A section can match the reader's words, or the words that the book
// uses instead.
function scored({ said, meant }, index) {
  const own = total(said, index);
  const other = total(meant, index);
  const sums = new Map(own.sums);
  const most = Math.max(...other.sums.values());
  const usual = own.exact && said.length === 1 ? MEANT_TOO : MEANT;
  // If a name occurs in the book, readers mean exactly that name, so the sections that contain it come first.
  const counts = own.exact && said.some(isName) ? Math.min(usual, Math.min(...own.sums.values()) / 2 / most) : usual;
  for (const [place, score] of other.sums) sums.set(place, Math.max(sums.get(place) ?? 0, score * counts));
  return { sums, terms: [...own.terms, ...other.terms], known: own.near || meant.length > 0 };
}

// Return the pages, best first: each with its best section, the section's score, the share of the query that the
// section covers, and further sections. Also return the terms found on these pages, and whether the matches are weak.
function ranked(query, data, index) {
  const asked = parts(query, data.synonyms, index).map((part) => scored(part, index));
  const weights = asked.map(({ sums }) => Math.log2(1 + data.sections.length / Math.max(1, sums.size)));
  const whole = weights.reduce((sum, weight) => sum + weight, 0);
  const found = new Map(); // place → {score, share}
  asked.forEach(({ sums }, i) => {
    for (const [place, score] of sums) {
      const so = found.get(place) ?? { score: 0, share: 0 };
      found.set(place, { score: so.score + score, share: so.share + weights[i] / whole });
    }
  });
  const list = [...found].map(([place, { score, share }]) => ({ place, share, score: score * share ** WHOLE }));
  together(list, written(query), data);
  const unknown = weights.filter((_, i) => !asked[i].known).reduce((sum, weight) => sum + weight / whole, 0);
  const few = weak(list, unknown);
  const terms = new Set(asked.flatMap((part) => part.terms));
  return { list: grouped(list, data).slice(0, few ? FEW : SHOWN), terms, weak: few };
}

const better = (a, b) => b.score - a.score || a.place - b.place;

// Sort the sections, best first, after raising the scores of those in which adjacent words of the query are also
// adjacent.
function together(list, said, { pages, sections }) {
  const asked = pairs(said).filter((pair) => pair.every(telling));
  for (const one of list.sort(better).slice(0, LOOKED_AT)) {
    const [page, , title, text] = sections[one.place];
    const texts = [title, text, pages[page][3]].map(written);
    const there = asked.filter((pair) => texts.some((other) => stands(pair, other)));
    if (there.length > 0) one.score *= 1 + (ADJACENT * there.length) / asked.length;
  }
  list.sort(better);
}

// Group the sections by page. A page is as good as its best section, and its other sections are listed below that one.
function grouped(list, { sections }) {
  const found = new Map(); // page → its best section
  for (const one of list) {
    const page = sections[one.place][0];
    const best = found.get(page);
    if (!best) found.set(page, { ...one, more: [] });
    else if (best.more.length < MORE && one.share >= GOOD * best.share) best.more.push(one.place);
  }
  return [...found.values()];
}

function weak(list, unknown) {
  return list.length > 0 && (unknown > 0.5 || Math.max(...list.map(({ share }) => share)) < 0.6);
}

// ---- Excerpts ----

const PIECE = /([\p{L}\p{N}_]+(?:[.,][\p{L}\p{N}_]+)*)/u;

// Split a text into pieces, and mark those that are among the terms found.
const split = (text, terms) =>
  text.split(PIECE).map((piece, i) => ({ piece, hit: i % 2 === 1 && words(piece).some((one) => terms.has(one)) }));

// The part of the text that contains the most terms, cut between words.
function snippet(text, terms) {
  const places = [];
  let at = 0;
  for (const { piece, hit } of split(text, terms)) {
    if (hit) places.push(at);
    at += piece.length;
  }
  const within = (start) => places.filter((place) => place >= start && place < start + SNIPPET - 40).length;
  const best = places.reduce((a, b) => (within(b) > within(a) ? b : a), places[0] ?? 0);
  const start = best < 60 ? 0 : text.indexOf(" ", best - 60) + 1;
  const end = start + SNIPPET < text.length ? text.lastIndexOf(" ", start + SNIPPET) : text.length;
  return (start > 0 ? "… " : "") + text.slice(start, end) + (end < text.length ? " …" : "");
}

export { indexed, LONGEST, question, ranked, SHOWN, snippet, split, words };
