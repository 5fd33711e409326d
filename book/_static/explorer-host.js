// Brings the interactive figures of a page to life without a kernel. It reads the widgets' state from the page, turns
// each figure's script into a module, and gives that module a model and a place on the page. This is a classic script,
// because browsers refuse modules over file://. The still figure remains until the live one starts, or permanently if
// that fails.
(() => {
  "use strict";
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';
  const REST = 2500; // after this many milliseconds, figures that are far from the reader start too
  const HERE = document.currentScript.src;
  const modules = new Map(); // source → promise of the module, so that figures with the same script share it
  const files = new Map(); // name → promise of the text

  function load(source) {
    if (!modules.has(source)) {
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      modules.set(source, import(url).finally(() => URL.revokeObjectURL(url)));
    }
    return modules.get(source);
  }

  // The content of the site's file with this name, in base64. It comes in a script, because nothing else loads over
  // file://.
  function file(name) {
    if (!files.has(name)) {
      files.set(name, new Promise((done, failed) => {
        const script = document.createElement("script");
        script.src = new URL(`../${name}.js`, HERE).href;
        script.onerror = () => failed(new Error(`${name}.js did not load`));
        script.onload = () => {
          const text = window.ropebookFiles?.[name];
          if (text) done(text);
          else script.onerror();
        };
        document.head.append(script);
      }).catch((error) => {
        files.delete(name); // another attempt may succeed
        throw error;
      }));
    }
    return files.get(name);
  }

  // A script is given as text, or as { parts: [names] }, where the page contains the text of each part once.
  function sourceOf(esm, parts) {
    if (typeof esm === "string") return esm;
    return esm.parts.map((name) => {
      if (typeof parts?.[name] !== "string") throw new Error(`the page lacks ${name}`);
      return `//# part: ${name}\n${parts[name]}`;
    }).join("");
  }

  // A model with the methods that a figure's script expects. There is no kernel, so saving and sending do nothing.
  function makeModel(state) {
    const values = { ...state };
    const listeners = new Map();
    const tell = (event, ...details) => [...(listeners.get(event) ?? [])].forEach((listener) => listener(...details));
    const model = {
      get: (name) => values[name],
      set(name, value) {
        if (JSON.stringify(values[name]) === JSON.stringify(value)) return;
        values[name] = value;
        tell(`change:${name}`, model, value);
        tell("change", model);
      },
      on(event, listener) {
        listeners.set(event, [...(listeners.get(event) ?? []), listener]);
      },
      off(event, listener) {
        listeners.set(event, (listeners.get(event) ?? []).filter((one) => listener && one !== listener));
      },
      save_changes() {},
      send() {},
    };
    return model;
  }

  async function start(place, key, models) {
    const el = document.createElement("div");
    el.className = "explorer-live";
    try {
      const { model_id: id } = JSON.parse(place.querySelector(VIEW).textContent);
      const entry = models().get(id);
      if (!entry) throw new Error("the page lacks its state");
      const { default: script } = await load(sourceOf(entry.esm, entry.parts));
      place.append(el);
      place.classList.add("explorer-alive");
      await script.render({ model: entry.model, el, page: { key, file } });
      place.ropebook = { el, model: entry.model };
    } catch (error) {
      el.remove();
      place.classList.remove("explorer-alive");
      const note = document.createElement("p");
      note.className = "explorer-failed";
      note.setAttribute("role", "status");
      note.textContent = `This figure is not interactive: its script did not start (${error.message}).`;
      place.append(note);
    }
  }

  // The figure that a step of "Try this" is about. Of the figures that show the step's explorer, this is the last one
  // above the step, or the first one if they are all below it.
  function placeOf(step) {
    const all = [...document.querySelectorAll(`.explorer[data-explorer="${step.dataset.explorer}"]`)];
    const before = all.filter((place) => place.compareDocumentPosition(step) & place.DOCUMENT_POSITION_FOLLOWING);
    return before.at(-1) ?? all[0];
  }

  // The figure presents its steps in its own card. The page lists the steps that have been answered, with the reader's
  // guesses.
  function equip(items, { el }) {
    const steps = items.map((item) => {
      const { start: settings, show, goal, right, hides = "" } = item.dataset;
      const answers = [...item.querySelectorAll(".try-answers > li")].map(inside);
      const [reason, ...more] = item.querySelector(".try-why").children;
      const why = [...[...reason.childNodes].slice(1), ...more];
      const question = [...item.children].filter((child) => child.localName === "p");
      return { question, answers, right: Number(right), why, start: settings, show, goal, hides };
    });
    el.ropebook.ask(steps, (at, guess) => {
      const item = items[at];
      item.classList.add("try-told");
      item.querySelector(".try-guess")?.remove();
      if (guess === null) return;
      const said = document.createElement("p");
      said.className = "try-guess";
      said.append("You said: ", ...steps[at].answers[guess].map((node) => node.cloneNode(true)));
      item.querySelector(".try-why").before(said);
    });
  }

  // The content of a list item. If the item is a single paragraph, this is the paragraph's content.
  function inside(item) {
    return [...(item.children.length === 1 && item.firstElementChild.localName === "p" ? item.firstElementChild : item)
      .childNodes];
  }

  function readModels() {
    const models = new Map();
    for (const script of document.querySelectorAll(STATE)) {
      const { state, parts } = JSON.parse(script.textContent);
      for (const [id, { state: values }] of Object.entries(state)) {
        if (values._esm) models.set(id, { model: makeModel(values), esm: values._esm, parts });
      }
    }
    return models;
  }

  function idle() {
    // Not every browser has requestIdleCallback.
    return new Promise((done) => (window.requestIdleCallback?.(done, { timeout: 200 }) ?? setTimeout(done)));
  }

  // For each figure, a promise that is fulfilled when it should start: when the reader is within two screens of it, or
  // when the page has been open for a while. On a phone, each start blocks the page for a fifth of a second.
  function turns(places, wait) {
    const come = new Map();
    const near = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) come.get(target)();
    }, { rootMargin: "200% 0px" });
    const all = places.map((place) => {
      const turn = new Promise((done) => come.set(place, done));
      near.observe(place);
      return turn;
    });
    setTimeout(() => come.forEach((done) => done()), wait);
    return all;
  }

  async function startAll() {
    let found;
    const models = () => (found ??= readModels()); // called inside start(), which reports a failure in the page
    // A figure's dials appear in the address under its name. A second figure of the same name is called name-2.
    const seen = new Map();
    const places = [...document.querySelectorAll(".explorer")].map((place) => {
      const name = place.dataset.explorer;
      seen.set(name, (seen.get(name) ?? 0) + 1);
      return [place, seen.get(name) > 1 ? `${name}-${seen.get(name)}` : name];
    });
    const named = location.hash.slice(1).split("&").filter((entry) => entry.includes("="))
      .map((entry) => places.find(([, key]) => entry.startsWith(`${key}.`))).filter(Boolean);
    const steps = new Map([...document.querySelectorAll(".try-step")].map((step) => [step, placeOf(step)]));

    let before = Promise.resolve(); // figures start one after another, so that the page can respond in between
    const alive = turns(places.map(([place]) => place), named.length ? 0 : REST).map(async (turn, at) => {
      await turn;
      const [place, key] = places[at];
      await (before = before.then(idle).then(() => start(place, key, models)));
      const own = [...steps].filter(([, its]) => its === place).map(([step]) => step);
      if (own.length && place.ropebook) equip(own, place.ropebook);
      else for (const step of own) step.closest(".try").classList.add("try-plain");
    });
    await Promise.all(alive);

    // An address that contains dials is a link to their figure. If it contains dials of several figures, it leads to
    // the figure that was changed most recently, whose dials are at the end. After a reload, the browser itself returns
    // to where the reader was.
    const fresh = performance.getEntriesByType("navigation")[0]?.type === "navigate";
    if (named.length && fresh) named.at(-1)[0].scrollIntoView();
  }

  startAll();
})();
