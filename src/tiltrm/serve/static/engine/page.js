// The page's own solver, in place of the server (the same functions as api.js): a worker solves, nothing leaves the browser.

export class Refusal extends Error {
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

const root = new URL("../", import.meta.url); // the folder of index.html
const asked = new URLSearchParams(location.search);
const listeners = new Map(); // id of a run -> function
const MOST_SILENT = 2; // workers in a row that do not start, before the page gives up
let worker = null, runs = 0;
const ready = begin();

/** No token is needed without a server. */
export const useToken = () => {};

async function get(path) {
  const response = await fetch(new URL(path, root)).catch(() => null);
  if (!response?.ok) throw new Refusal(`The file ${path} of this site cannot be read; is there a connection?`, 0);
  return response;
}

const read = async (path) => (await get(path)).json();

/** The site's own description; the worker begins to load the model at once, unless the reader saves data. */
async function begin() {
  if (await isolate()) return new Promise(() => {}); // the page is about to load again
  const site = await read("site.json");
  start(site);
  if (!navigator.connection?.saveData && !asked.has("wait")) worker.postMessage({ type: "open", name: site.models[0].name });
  return site;
}

let frugal = ""; // why one thread computes one particle at a time; empty before anything failed
let heard = false, silent = 0; // whether this worker has sent anything; workers in a row that did not

function start(site) {
  heard = false;
  worker = new Worker(new URL("engine/worker.js", import.meta.url), { type: "module", name: frugal ? "frugal" : "solver" });
  const threads = Number(asked.get("threads")) || undefined, backend = asked.get("backend") || undefined;
  worker.postMessage({ type: "site", site: { ...site, root: root.href, asked: { threads, backend, frugal } } });
  worker.onmessage = ({ data }) => {
    heard = true;
    silent = 0;
    const first = !frugal;
    if (data.broken) renew(site, data.broken);
    hear(data);
    if (data.broken && data.id === null && first) worker.postMessage({ type: "open", name: data.model });
  };
  worker.onerror = (event) => {
    event.preventDefault();
    broke(site);
  };
}

/** The worker ended by itself; a new one takes its place, unless it is the third in a row that does not even start. */
function broke(site) {
  silent += Number(!heard);
  if (silent > MOST_SILENT) {
    const error = "The solver of this page does not start; reload the page, with a connection.";
    worker.terminate();
    worker = null;
    tell(error);
    return fail({ type: "failed", error });
  }
  renew(site, heard ? "the solver stopped" : frugal); // one that did not even start has not used up its memory
  fail({ type: "failed", broken: frugal, error: "The solver stopped, perhaps because memory ran out; close other pages, or take fewer particles." });
}

/** A new worker in place of one that failed, which needs less memory. */
function renew(site, why) {
  worker.terminate();
  frugal = why;
  start(site);
}

const fail = (data) => [...listeners.values()].forEach((listen) => listen(data));

/**
 * Threads need a page that is isolated from other sites. A plain host does not say so, hence a service worker of the site
 * adds the two headers and keeps the files for the next visit. True where the page must load once more.
 */
async function isolate() {
  if (!("serviceWorker" in navigator) || asked.has("plain")) return false;
  try {
    const registration = await navigator.serviceWorker.register(new URL("service.js", root), { scope: root.pathname });
    if (globalThis.crossOriginIsolated || navigator.serviceWorker.controller || window.top !== window) return false;
    if (sessionStorage.getItem("tiltrm-isolated")) return false; // tried before, in vain
    await (registration.active ? null : activated(registration));
    sessionStorage.setItem("tiltrm-isolated", "1");
    location.reload();
    return true;
  } catch {
    return false; // no service workers here: one thread
  }
}

const activated = (registration) => new Promise((resolve) => {
  const fresh = registration.installing ?? registration.waiting;
  if (!fresh) return resolve();
  fresh.addEventListener("statechange", () => fresh.state === "activated" && resolve());
});

/** The lines beneath the button: what is loaded and on what it runs, a button to go on, and notes that stay. */
function lines() {
  let element = document.getElementById("engine");
  if (!element) {
    const make = (tag, attributes) => Object.assign(document.createElement(tag), attributes);
    element = make("div", { id: "engine", className: "hint" });
    const bar = make("progress", { hidden: true });
    bar.setAttribute("aria-label", "Download of the model");
    const again = make("button", { id: "go-on", type: "button", textContent: "Go on", hidden: true });
    again.addEventListener("click", goOn);
    element.append(make("span"), bar, again);
    const notes = make("p", { id: "engine-notes", className: "hint" });
    notes.setAttribute("role", "status");
    document.getElementById("trouble").before(element, notes);
  }
  return { element, notes: document.getElementById("engine-notes") };
}

let stopped = ""; // the model whose download broke off

function tell(text, share = null) {
  const [words, bar, again] = lines().element.children;
  words.textContent = text;
  bar.hidden = share === null;
  if (share !== null) bar.value = share;
  again.hidden = !stopped;
}

/** Load the rest of the model. */
function goOn() {
  if (!stopped) return;
  worker.postMessage({ type: "open", name: stopped });
  stopped = "";
  tell("Loading the model …");
}

addEventListener("online", goOn); // by itself once the connection is back

const note = (text) => void (lines().notes.textContent = text);
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

function hear(data) {
  if (data.type === "progress" || data.type === "ready") stopped = "";
  if (data.type === "progress") {
    const share = data.loaded / data.total;
    tell(share < 1 ? `Loading the model: ${megabytes(data.loaded)} of ${megabytes(data.total)} MB` : "Preparing the model …", share);
  } else if (data.type === "ready") {
    tell(`Runs in this browser, on ${data.words}; nothing is sent anywhere.`);
    note(data.notes.join(" "));
  } else if (data.type === "rate") tell(`On ${data.words}: ${data.rate.toFixed(data.rate < 10 ? 1 : 0)} evaluations a second`);
  else if (data.type === "note") note(data.text);
  else if (data.type === "failed") {
    stopped = data.unfinished ?? "";
    if (data.id === null || stopped) tell(data.error);
  }
  listeners.get(data.id)?.(data);
}

export const models = async () => (await ready).models;
export const settingsTable = async () => (await ready).form;
export const samples = () => read("static/samples.json");

/** The page of a replay without its data, for a file of one's own. */
export const replayTemplate = async () => (await get("static/replay.html")).text();

/** One of the puzzles that were generated for the site. */
export async function generate(task, seed) {
  const puzzles = await read("static/generated.json");
  if (!Object.hasOwn(puzzles, task)) throw new Refusal(`This site has no generated puzzles for ${task}; choose a sample.`, 0);
  return puzzles[task][seed % puzzles[task].length];
}

/** Run a puzzle; yields [event, data] as they come. */
export async function* solve(body, signal) {
  const site = await ready;
  const wrong = badSetting(site.form.settings, body);
  if (wrong) throw new Refusal(wrong, 422);
  const id = ++runs, waiting = [];
  let wake = () => {};
  listeners.set(id, (data) => { waiting.push(data); wake(); });
  if (!worker) start(site); // it did not start before; once more
  const abort = () => { worker?.postMessage({ type: "stop", id }); wake(); };
  signal.addEventListener("abort", abort);
  const post = () => worker.postMessage({ type: "solve", id, body });
  let again = !frugal; // once more, with less memory
  post();
  try {
    for (;;) {
      if (signal.aborted) throw new DOMException("Stopped", "AbortError");
      const data = waiting.shift();
      if (!data) await new Promise((resolve) => (wake = resolve));
      else if (data.type === "event") yield [data.name, data.data];
      else if (data.type === "failed" && data.broken && again) {
        again = false;
        post();
      } else if (data.type === "failed") throw new Refusal(data.error, 0);
      else if (data.type === "end") return;
    }
  } finally {
    listeners.delete(id);
    signal.removeEventListener("abort", abort);
  }
}

const SEED = { name: "seed", kind: "int", least: Number.MIN_SAFE_INTEGER, most: Number.MAX_SAFE_INTEGER }; // every method has it

/** The first setting outside its limits, in one sentence; empty where all are within. */
function badSetting(rows, body) {
  for (const { name, kind, least, most } of [SEED, ...rows.filter(({ methods }) => methods.includes(body.method))]) {
    const value = body[name];
    if (value === undefined || value === null) continue;
    if (kind === "int" && !Number.isInteger(value)) return `${name} must be a whole number, got ${value}.`;
    if (kind !== "int" && kind !== "float") continue;
    if (least !== null && value < least) return `${name} must be at least ${least}, got ${value}.`;
    if (most !== null && value > most) return `${name} must be at most ${most} here, got ${value}.`;
  }
  return "";
}
