// Exercises that are answered on the page: a form under the question says whether an answer is right and, if not, which
// mistake was made. The rules come from ropebook.exercises as data; they are applied here just as `Numbers` and
// `Chosen` apply them.
(() => {
  "use strict";

  // ---- Numbers as people write them ----

  const DIGITS = "(?:\\d+(?:[, \\u00a0\\u202f_]\\d{3})*(?:\\.\\d+)?|\\.\\d+)(?:e[+\\-−]?\\d+)?";
  const FACTOR = `(?:${DIGITS}\\s*(?:π|pi)?|π|pi)`;
  const NUMBER = new RegExp(`^\\s*([-−+]?)\\s*(${FACTOR}(?:\\s*[*·×/]\\s*${FACTOR})*)\\s*(%?)\\s*$`, "i");

  function factor(text) {
    const digits = text.replace(/π|pi|[\s,_]/gi, "").replace("−", "-");
    return (digits ? Number(digits) : 1) * (/π|pi/i.test(text) ? Math.PI : 1);
  }

  // The number written in a text, or null.
  function read(text) {
    const found = NUMBER.exec(text);
    if (!found) return null;
    const [, sign, product, percent] = found;
    let value = sign === "-" || sign === "−" ? -1 : 1;
    for (const [, operator, one] of product.matchAll(new RegExp(`([*·×/]?)\\s*(${FACTOR})`, "gi"))) {
      const number = factor(one);
      if (operator === "/" && number === 0) return null;
      value = operator === "/" ? value / number : value * number;
    }
    if (percent) value /= 100;
    return value;
  }

  // ---- Feedback on an answer ----

  function filled(words, values) {
    return words.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
  }

  const parts = (text) => text.split(/[\s,;()[\]]+/).filter(Boolean);

  // The content of a field as numbers, or the sentence that says why it can't be used.
  function valuesOf(given, { label, values }, words) {
    const text = given.trim();
    if (!text) return { said: filled(words.missing, { label }) };
    const each = values.length > 1 ? parts(text) : [text];
    if (each.length !== values.length) {
      return { said: filled(words.count, { label, wanted: values.length, text, found: each.length }) };
    }
    const numbers = each.map(read);
    const odd = numbers.findIndex((one) => one === null || !Number.isFinite(one));
    if (odd >= 0) return { said: filled(words.unreadable, { text: each[odd] }) };
    return { numbers, each };
  }

  const close = (found, value, within) => Math.abs(found - value) <= within * (Math.abs(value) || 1) + 1e-12;

  function matches(found, values, { within }) {
    return values === null || values.every((value, place) => close(found[place], value, within));
  }

  // The first wrong number, as it was written.
  function differing(read, { fields, words }) {
    for (const [i, { label, values, within }] of fields.entries()) {
      const place = values.findIndex((value, at) => !close(read[i].numbers[at], value, within));
      if (place < 0) continue;
      const kind = values.length > 1 ? "entry" : fields.length > 1 ? "field" : "one";
      return filled(words[kind], { label, place: place + 1, text: read[i].each[place] });
    }
    return "";
  }

  function markNumbers(given, rules) {
    const read = [];
    for (const [i, field] of rules.fields.entries()) {
      const one = valuesOf(given[i], field, rules.words);
      if (one.said) return { right: false, said: one.said };
      read.push(one);
    }
    const is = (values) => rules.fields.every((field, i) => matches(read[i].numbers, values[i], field));
    if (is(rules.fields.map(({ values }) => values))) return { right: true, said: rules.praise };
    const known = rules.mistakes.find(({ values }) => is(values));
    return { right: false, said: known ? known.said : differing(read, rules) };
  }

  function markChoice(given, { options, right, words }) {
    if (!Object.hasOwn(options, given)) return { right: false, said: words.choose };
    return { right: given === right, said: options[given] };
  }

  const mark = (given, rules) => (rules.fields ? markNumbers(given, rules) : markChoice(given[0], rules));

  if (typeof document === "undefined") {
    globalThis.answers = { read, mark };
    return;
  }

  // ---- The page ----

  for (const form of document.querySelectorAll("form.answer")) {
    const rules = JSON.parse(form.querySelector("script").textContent);
    const output = form.querySelector("output");
    const clear = () => {
      output.textContent = "";
      delete form.dataset.outcome;
    };
    form.hidden = false;
    form.addEventListener("input", clear);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const given = rules.fields
        ? [...form.querySelectorAll("input")].map(({ value }) => value)
        : [form.querySelector("input:checked")?.value ?? ""];
      const { right, said } = mark(given, rules);
      form.dataset.outcome = right ? "right" : "wrong";
      output.textContent = `${right ? "Right" : "Not yet"}: ${said}`;
    });
  }
})();
