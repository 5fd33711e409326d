// Runs the model in a worker, so that the page stays responsive, and loads the model's weights.

// The function that the worker runs. The worker gets only its source, so it must not use anything from outside.
//   It gets    { stored }, the weights; then { id, run, look }, what to read and which head and byte to look at
//              afterwards; { id, look }, to look again without reading; or { id, run, aside }, to read something later
//              for comparison, under the name `aside`.
//   It posts   { id, share } while it reads; { id, found, row }, where `row` contains the head's attention at `look`; {
//              id, row }; { aside, found }; or { problem }.
// A reading is interrupted by any later request, but a comparison only by another text.
function serve(make) {
  let model;
  let last; // what attention() needs from the last text, not counting comparisons
  let newest; // the id of the latest request
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

// Starts a worker with a model. `parts` lists the model's functions, the first of which builds it from the stored
// weights. told(message) receives the worker's messages.
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

// Loads the weights from a file on the site or from the kernel.
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
