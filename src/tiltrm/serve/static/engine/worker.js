// The worker of the page: holds the model, solves one puzzle at a time, sends the events of the server's stream.

import { FrameBuilder, baselineEvent, resultEvent, startEvent, terminalCommand } from "./frames.js";
import { Model } from "./model.js";
import { baselineSearch, buildSearch } from "./plan.js";
import { EngineError, download, interleaved, offerWords, offers, openRuntime } from "./runtime.js";
import { Search } from "./search.js";
import { taskOf } from "./tasks.js";
import { readViews } from "./views.js";

const TASK = new MessageChannel(); // a turn of the event loop without a timer's delay
const turns = [];
TASK.port1.onmessage = () => turns.shift()();
const turn = () => new Promise((resolve) => { turns.push(resolve); TASK.port2.postMessage(null); });

let site = null; // {root, files, models, asked}
let current = null; // {name, model, known, views, task, offer}
const runtimes = {}; // by build: a page has one
const kept = new Map(); // path -> bytes, of a model that is not complete yet
const failures = []; // what could not be used, in sentences
const stopped = new Set();

const url = (path) => new URL(path, site.root).href;
const say = (message) => postMessage(message);

/** Open a model on the best that there is; what does not work is noted and the next is tried. */
async function open(name, worse = 0) {
  if (current?.name === name && !worse) return current;
  const { found, notes } = await offers(site.asked);
  const left = found.slice(worse);
  if (!left.length) throw new EngineError("Nothing is left to run on: WebGPU and WebAssembly both failed; close other pages and reload this one.");
  for (const [k, offer] of left.entries()) {
    try {
      current = { ...(await openOn(name, offer)), rank: worse + k };
      kept.clear();
      say({ type: "ready", name, words: offerWords(offer), notes: [...notes, ...failures], ...offer });
      return current;
    } catch (error) {
      const last = k === left.length - 1 || left[k + 1].build === offer.build; // a runtime begins once in a worker
      if (error instanceof EngineError || last) throw Object.assign(error, { model: name, broken: brokenBy(error) });
      failures.push(`${offerWords(offer)} could not be used (${reason(error)}).`);
      say({ type: "note", text: failures.at(-1) });
    }
  }
}

/** A file of the site; those that arrived before the connection was lost are not loaded again. */
async function load(path, note) {
  if (kept.has(path)) note(site.files[path]);
  else kept.set(path, await download(url(path), note));
  return kept.get(path);
}

async function openOn(name, offer) {
  const parts = site.models.find((model) => model.name === name).files;
  const fresh = !runtimes[offer.build];
  const { binary } = site.runtime[offer.build];
  const wanted = [...(fresh ? [binary] : []), parts.about, parts.embed, parts.step];
  const total = wanted.reduce((sum, path) => sum + site.files[path], 0);
  let loaded = 0;
  const note = (bytes) => say({ type: "progress", loaded: (loaded += bytes), total });
  const arrived = await Promise.allSettled(wanted.map((path) => load(path, note))); // a loss of one does not stop the others
  const lost = arrived.find(({ status }) => status === "rejected");
  if (lost) throw lost.reason;
  if (fresh) {
    const places = Object.fromEntries(Object.entries(site.runtime).map(([build, { script, loader }]) =>
      [build, { script: url(script), loader: url(loader) }]));
    runtimes[offer.build] = await openRuntime(offer, places, kept.get(binary));
  }
  const [about, embed, step] = [parts.about, parts.embed, parts.step].map((path) => kept.get(path));
  const known = JSON.parse(new TextDecoder().decode(about));
  await current?.model.close().catch(() => {}); // a runtime that failed may refuse even this
  const model = await Model.open(runtimes[offer.build], known, { embed: interleaved(embed), step: interleaved(step) },
    { executionProviders: [offer.backend] });
  return { name, model, known, views: readViews(known), task: taskOf(known), offer };
}

const reason = (error) => String(error?.message ?? error).split("\n")[0].slice(0, 160);
/** Why a new worker is needed; empty where it would not help. */
const brokenBy = (error) => (error instanceof EngineError ? "" : noMemory(error) ? "memory ran out" : reason(error));
const noMemory = (error) => /memory|allocat|bad_alloc|abort/i.test(reason(error));

/** One search to its end; null where it was stopped. Counts evaluations and seconds for the rate. */
async function searched(id, engine, built, tokens, seed, views, show) {
  const search = new Search(engine.model, built, engine.task, tokens, seed, views);
  if (site.asked.frugal) search.block = 1;
  search.note = (text) => say({ type: "note", text });
  search.pause = async () => {
    await turn();
    if (stopped.has(id)) throw new Stop();
  };
  let last = null;
  for await (const info of search.run()) {
    show?.(info);
    last = info;
    await search.pause();
  }
  return last.result;
}

class Stop extends Error {}

async function solve(id, body) {
  const { puzzles: [puzzle], task: taskName, baseline, model: _, ...settings } = body;
  const listed = site.models.find(({ task }) => task === taskName);
  if (!listed) throw new EngineError(`Expected a task that this page has a model for, got ${taskName}.`);
  let engine = await open(listed.name).catch((error) => {
    if (error.useTerminal) error.message += ` In a terminal: ${terminalCommand(puzzle, listed, settings)}`;
    throw error;
  });
  for (;;) {
    try {
      return await solveOn(engine, id, puzzle, settings, baseline);
    } catch (error) {
      if (!error.ofModel || (noMemory(error) && engine.offer.backend === "wasm")) throw error;
      failures.push(`${offerWords(engine.offer)} failed (${reason(error)}).`);
      engine = await open(listed.name, engine.rank + 1);
    }
  }
}

async function solveOn(engine, id, puzzle, settings, baseline) {
  const { known, task, views } = engine;
  const tokens = task.encode(puzzle);
  const given = { method: "adaptive", seed: 0, ...settings };
  const send = (name, data) => say({ type: "event", id, name, data });
  const built = buildSearch(known, task, given);
  send("start", startEvent(known, task, tokens, given));
  const frames = new FrameBuilder(built.plan, task.cells(tokens));
  const begun = performance.now();
  const rate = (evaluations) => say({ type: "rate", rate: (1000 * evaluations) / (performance.now() - begun), words: offerWords(engine.offer) });
  const result = await searched(id, engine, built, tokens, given.seed, views, (info) => {
    send("step", frames.frame(info, engine.model));
    rate(info.evaluations);
  });
  send("result", resultEvent(task, tokens, result, (performance.now() - begun) / 1000));
  if (!baseline) return;
  // Adaptive solving begins with the deterministic run, so where that decided there is nothing more to compute.
  const same = built.settings?.halt_above === known.stopping.halt_above && !built.rules.rules && built.plan.stages[0].particles === 1
    && result.decidedBy === "halting" && result.particles === 1 && result.outerSteps <= built.plan.stages[0].outer_steps;
  const plain = same ? result : await searched(id, engine, baselineSearch(known, task), tokens, 0, null);
  send("baseline", baselineEvent(task, tokens, plain));
}

let queue = Promise.resolve(); // one run at a time

onmessage = ({ data }) => {
  if (data.type === "site") site = data.site;
  else if (data.type === "stop") stopped.add(data.id);
  else if (data.type === "open") queue = queue.then(() => open(data.name)).catch((error) => fail(null, error));
  else if (data.type === "solve") {
    queue = queue.then(() => (stopped.has(data.id) ? null : solve(data.id, data.body)))
      .then(() => say({ type: "end", id: data.id }))
      .catch((error) => fail(data.id, error));
  }
};

function fail(id, error) {
  if (error instanceof Stop) return say({ type: "end", id });
  const memory = !(error instanceof EngineError) && noMemory(error);
  const sentence = memory ? "The memory of this browser did not suffice; close other pages, or take fewer particles." : error.message;
  const broken = error.broken || (memory ? "memory ran out" : ""); // the page starts a new worker
  say({ type: "failed", id, error: sentence, broken, model: error.model, unfinished: error.lost ? error.model : undefined });
}
