// The model at work beside the page, which answers meanwhile; and where its weights come from.

// What stands in the worker; it gets its text, too, and names nothing outside. In: { stored }, the weights; then
// { id, run, look }, what to read and where to look at the end, or { id, look } alone; or { id, run, aside }: after
// that, for what is shown beside it, under the name `aside`. Out: { id, share } while it reads, { id, found, row },
// where `row` is what it attends to at `look`; { id, row }; { aside, found }; { problem }. What is asked later stops
// what is being read; what is read aside only another text stops.
function serve(make) {
  let model;
  let last; // what attention() needs of the last text that was not read aside
  let newest; // id
  let newestRun;
  const { port1, port2 } = new MessageChannel();
  const pause = () => new Promise((done) => {
    port1.onmessage = done;
    port2.postMessage(null);
  });

  async function read(id, run, look, aside) {
    newestRun = id;
    const work = model.run(run);
    let step = work.next();
    for (; !step.done; step = work.next()) {
      if (!aside) self.postMessage({ id, share: step.value });
      await pause();
      if (id !== (aside ? newestRun : newest)) return;
    }
    const { scores, ...found } = step.value;
    if (aside) return self.postMessage({ aside, found });
    last = scores;
    self.postMessage({ id, found, row: model.attention(last, ...look) });
  }

  self.onmessage = async ({ data: { id, stored, run, look, aside } }) => {
    newest = id;
    try {
      if (stored) model = make(stored);
      else if (run) await read(id, run, look, aside);
      else self.postMessage({ id, row: model.attention(last, ...look) });
    } catch (error) {
      self.postMessage({ problem: error.message });
    }
  };
}

// A worker with a model, given as the functions that it consists of: the first makes it from what is stored.
// told(message) gets what the worker says.
export function startWorker(/** @type {Function[]} */ parts, /** @type {ArrayBuffer} */ stored, told) {
  const text = `${parts.join("\n")}\n(${serve})(${parts[0].name});`;
  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  worker.onmessage = ({ data }) => told(data);
  worker.onerror = ({ message }) => told({ problem: message });
  worker.postMessage({ stored }, [stored]);
  return worker;
}

// The weights, from a file of the site or from the kernel.
export async function loadWeights({ model, page }) {
  const packed = page?.file ? fromText(await page.file("model")) : await fromKernel(model);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function fromText(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

function fromKernel(model) {
  return new Promise((done) => {
    const heard = (content, buffers) => {
      if (content !== "weights") return;
      model.off("msg:custom", heard);
      done(buffers[0]);
    };
    model.on("msg:custom", heard);
    model.send("weights");
  });
}
