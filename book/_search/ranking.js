// Which sections of the book answer a reader's words, best first. MiniSearch finds and weighs words (BM25), Porter's
// stemmer makes one form of scale, scales and scaling; what a reader means, and how much of it a section has, is here.
import MiniSearch from "minisearch";
import { stemmer } from "stemmer";

const SHOWN = 20;
const FEW = 5; // where none of them is good
const LONGEST = 400; // characters of a question; more than a sentence or two would only take time
const SNIPPET = 220; // characters
const BOOST = { title: 3, page: 2.5, names: 2, text: 1 };
const BM25 = { k: 1.2, b: 0.5, d: 0.5 }; // b: a long section is no worse for being long
const BEGINNING = 0.6; // what a word counts that only begins with what was written
const MISSPELT = 0.5;
const MEANT = 0.8; // … that is another name for it
const MEANT_TOO = 0.5; // … if the book uses the reader's own word as well
const SAME_PAGE = 0.6; // what each further section of a page counts, so that other pages are seen
const WHOLE = 1.5; // the power of the share of a question that a section has
const TAILS = /^(Further reading|Summary|Exercises?)\b/; // they say again what was said
const TAIL = 0.6;
const SMALL = new Set(
  ("a an and are as at be but by can do does for from has have how i if in into is it its me my no not of on or so " +
    "that the then there this to was what when where which why will with you your").split(" "),
);

// ---- Words ----

const WORD = /\beq(?:-[\p{L}\p{N}]+)+|[\p{L}\p{N}]+(?:[_.][\p{L}\p{N}]+)*/gu;
const isName = (word) => /[_.]|^eq-/.test(word);

const stems = new Map(); // the book's words come again and again
function stem(word) {
  if (/[\d_.-]/.test(word)) return word;
  if (!stems.has(word)) stems.set(word, stemmer(word));
  return stems.get(word);
}

// As they are written: rotate_half is one, and 10,000 is 10000.
function written(text) {
  const plain = text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "");
  const spelt = plain.replace(/√/g, " sqrt ").replace(/(\d),(?=\d{3})/g, "$1");
  return (spelt.match(WORD) ?? []).map(stem);
}

const pieces = (word) => (isName(word) ? word.split(/[_.-]/).filter(Boolean).map(stem) : []);

// And the words within words: rotate, half.
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
  index.addAll(sections.map(([page, , title, text, names], id) => ({ id, title, page: pages[page][1], names, text })));
  return index;
}

// Where two letters changed places.
function exchanged(word, index) {
  const all = [...word].slice(1).map((_, i) => word.slice(0, i) + word[i + 1] + word[i] + word.slice(i + 2));
  return all.flatMap((other) => index.search(other));
}

// The sections that have a word, and how it stands there: `counts` is less than 1 if it is not the reader's own word,
// and `near` says whether it is at least almost that.
function lookedUp(word, index) {
  const exact = index.search(word);
  if (exact.length > 0) return { found: exact, counts: 1, near: true };
  const ways = [
    [3, BEGINNING, true, () => index.search(word, { prefix: true })],
    [4, MISSPELT, true, () => exchanged(word, index)],
    [4, MISSPELT, word.length > 5, () => index.search(word, { fuzzy: 1 })],
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

// The scores of the sections for a list of words, the words that stand there, and how well they were found.
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

// What a part of the question scores in the sections: its own words, or what is meant by them.
function scored({ said, meant }, index) {
  const own = total(said, index);
  const other = total(meant, index);
  const sums = new Map(own.sums);
  const most = Math.max(...other.sums.values());
  const usual = own.exact && said.length === 1 ? MEANT_TOO : MEANT;
  // A name that the book has is meant as it stands: where it stands comes first.
  const counts = own.exact && said.some(isName) ? Math.min(usual, Math.min(...own.sums.values()) / 2 / most) : usual;
  for (const [place, score] of other.sums) sums.set(place, Math.max(sums.get(place) ?? 0, score * counts));
  return { sums, terms: [...own.terms, ...other.terms], known: own.near || meant.length > 0 };
}

// The sections, best first, each with its score and the share of the question that it has; the words that stand there;
// and whether only few of them are good.
function ranked(query, data, index) {
  const asked = parts(query, data.synonyms).map((part) => scored(part, index));
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
  const unknown = weights.filter((_, i) => !asked[i].known).reduce((sum, weight) => sum + weight / whole, 0);
  const few = weak(list, unknown);
  const terms = new Set(asked.flatMap((part) => part.terms));
  return { list: spread(list, data).slice(0, few ? FEW : SHOWN), terms, weak: few };
}

const better = (a, b) => b.score - a.score || a.place - b.place;

// Best first, where each further section of a page counts less.
function spread(list, { sections }) {
  const seen = new Map();
  return list
    .sort(better)
    .map((one) => {
      const page = sections[one.place][0];
      const before = seen.get(page) ?? 0;
      seen.set(page, before + 1);
      return { ...one, score: one.score * SAME_PAGE ** before };
    })
    .sort(better);
}

function weak(list, unknown) {
  return list.length > 0 && (unknown > 0.5 || Math.max(...list.map(({ share }) => share)) < 0.6);
}

// ---- Excerpts ----

const PIECE = /([\p{L}\p{N}_]+(?:[.,][\p{L}\p{N}_]+)*)/u;

// The text in pieces, and which of them are among the words that were found.
const split = (text, terms) =>
  text.split(PIECE).map((piece, i) => ({ piece, hit: i % 2 === 1 && words(piece).some((one) => terms.has(one)) }));

// The part of the text with most of the words, cut between words.
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
