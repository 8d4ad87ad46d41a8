// The page: connects the board, the form, the server and the replay.

import { Refusal, generate, models, samples, settingsTable, solve, useToken } from "./api.js";
import { AnyBoard } from "./boards.js";
import { isColours } from "./colours.js";
import { byId, count, isDark, make, plural, reportClock } from "./dom.js";
import { askToken, buildForm, fillForm } from "./form.js";
import { wireKeep } from "./keep.js";
import { Replay } from "./replay.js";
import { CLOSED, SecondRun } from "./second.js";
import { sketch } from "./sketch.js";
import { freshState, learnSettings, readAddress, sameSettings, writeAddress } from "./state.js";
import { blankPuzzle, learn, servedTask, titleOf } from "./tasks.js";

const THEME = "tiltrm-theme";

const embedded = byId("replay"); // the data of `solve --html`: no server and no form
const replay = new Replay(runCloud);
const reportDue = reportClock();
const second = new SecondRun(replay, () => Boolean(running));
let state = freshState();
let settingsChosen = false; // by hand or by a link; else they follow the puzzle
let running = null; // the AbortController of the run under way

const board = new AnyBoard(byId("board"), byId("pad"), (puzzle, sentence) => {
  state.puzzle = puzzle;
  state.settings = settingsFor(state.task, puzzle);
  fillForm(byId("form"), state.settings);
  byId("fault").textContent = sentence;
  byId("samples").value = "";
  remember();
}, switchTo);

/** The task and the puzzle of a pasted address; false where no model is loaded for it. */
function switchTo(task, puzzle) {
  if (servedTask(task)) showPuzzle(task, puzzle);
  else byId("fault").textContent = `No model for ${titleOf(task)} is loaded${isColours(task) ? "" : "; tiltrm serve --model pencil loads one"}.`;
  return Boolean(servedTask(task));
}

/** The state into the address, without a step in the history for every clue. */
function remember() {
  if (!embedded) history.replaceState(null, "", writeAddress(state));
}

/** The button of a task; null where the page does not offer it, or not yet. */
const choiceOf = (task) => document.querySelector(`[name=task][value="${task}"]`);

/** A state onto the page. */
function show(next) {
  state = next;
  choiceOf(state.task).checked = true;
  for (const id of ["choice", "generate", "offers"]) byId(id).hidden = isColours(state.task); // ARC has no samples and no generator
  board.show(state.task, state.puzzle);
  byId("fault").textContent = state.puzzle === blankPuzzle(state.task) ? "" : board.fault;
  fillForm(byId("form"), state.settings);
  listSamples();
  remember();
}

/** Another puzzle onto the page. */
const showPuzzle = (task, puzzle) => show({ task, puzzle, settings: settingsFor(task, puzzle) });

/** The state of a link onto the page. */
function showLinked(linked) {
  settingsChosen = !sameSettings(linked.settings, suggested(linked.task, linked.puzzle));
  show(linked);
}

let bundled = { sudoku: [], maze: [] };

const samplesOf = (task) => (Object.hasOwn(bundled, task) ? bundled[task] : []);

/** The settings of a sample that has some, else the defaults. */
const suggested = (task, puzzle) =>
  ({ ...freshState(task).settings, ...samplesOf(task).find((sample) => sample.puzzle === puzzle)?.settings });

const settingsFor = (task, puzzle) => (settingsChosen ? state.settings : suggested(task, puzzle));

/** The first puzzle of a task: a sample, else a generated one, else an empty board. */
async function firstPuzzle(task) {
  if (isColours(task)) return blankPuzzle(task);
  return samplesOf(task)[0]?.puzzle ?? (await generate(task, 0).catch(() => blankPuzzle(task)));
}

function listSamples() {
  const levels = new Map();
  for (const { level, puzzle, name } of samplesOf(state.task)) {
    if (!levels.has(level)) levels.set(level, make("optgroup", { label: level }));
    const group = levels.get(level);
    group.append(make("option", { value: puzzle, text: name ?? `${level} ${group.children.length + 1}` }));
  }
  byId("samples").replaceChildren(make("option", { value: "", text: "Choose a sample …" }), ...levels.values());
  byId("samples").value = samplesOf(state.task).some(({ puzzle }) => puzzle === state.puzzle) ? state.puzzle : "";
}

/** Show what went wrong; a missing token opens its field. */
function complain(error) {
  if (error.name === "AbortError") return;
  if (error instanceof Refusal && error.status === 401) askToken();
  byId("trouble").textContent = error instanceof Refusal ? error.message : "The run ended early: the server’s answer could not be read.";
}

/** Solve the puzzle on the board, or stop the run under way. */
function start() {
  if (running) return running.abort();
  byId("fault").textContent = board.fault;
  if (!board.fault) run(state);
}

/** Run a cloud on this puzzle, small enough for a computer without a GPU; the settings stay. */
function runCloud({ task, puzzle, seed }) {
  if (running && !replay.over) return;
  running?.abort(); // a comparison that is still running
  run({ task, puzzle, settings: { method: "guided", seed, outer_steps: 16 } });
}

async function run({ task, puzzle, settings }) {
  byId("trouble").textContent = "";
  second.clear(settings.method);
  byId("status").classList.remove("unseen");
  byId("status").textContent = "Waiting for the first step …";
  const own = (running = new AbortController());
  setRunning("Stop");
  try {
    const body = { puzzles: [puzzle], task: servedTask(task) ?? task, ...settings, baseline: true };
    let complete = false;
    for await (const [name, data] of solve(body, own.signal)) complete = receive(name, data) || complete;
    if (!complete) throw new Refusal(CLOSED, 0);
  } catch (error) {
    if (running !== own) return; // another run has taken its place
    const stopped = error.name === "AbortError";
    replay.interrupt(stopped ? "Stopped" : "Interrupted");
    byId("status").textContent = stopped ? "Stopped." : "";
    complain(error);
  } finally {
    if (running === own) {
      running = null;
      replay.end();
      setRunning("");
    }
  }
}

/** One event of the stream; true where it is the last. */
function receive(name, data) {
  if (name === "start") {
    byId("empty").hidden = true;
    replay.begin(data);
    if (innerWidth < 900) byId("watch").scrollIntoView({ behavior: "smooth" });
  } else if (name === "step") {
    replay.add(data);
    progress(data);
  } else if (name === "baseline") replay.compare(data);
  else if (name === "result") {
    byId("status").classList.add("unseen"); // for screen readers only; the verdict is on the page
    byId("status").textContent = replay.conclude(data);
    if (!replay.baseline) setRunning("Stop the comparison"); // the deterministic run is still to come
  }
  else if (name === "error") throw new Refusal(data.error, 200);
  return name === "result";
}

/** Progress in words. */
function progress(frame) {
  if (!reportDue(frame.step === 1)) return;
  byId("status").textContent =
    `Outer step ${frame.step} of at most ${frame.steps}: ${plural(frame.particles, "particle")}, ${count(frame.evaluations)} evaluations.`;
}

/** The button: `stop` says what it stops; empty while nothing runs. */
function setRunning(stop) {
  byId("solve").textContent = stop || "Solve and watch";
  byId("solve").classList.toggle("stop", Boolean(stop));
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light theme" : "Dark theme"; // what a click switches to
  replay.redraw();
  second.redraw();
  sketch(byId("sketch"));
}

/** The theme that the browser has stored; a file or a strict browser may not allow it. */
function stored(write) {
  try {
    return write === undefined ? localStorage.getItem(THEME) : localStorage.setItem(THEME, write);
  } catch {
    return null;
  }
}

function wireTheme() {
  setTheme(stored() ?? (isDark() ? "dark" : "light"));
  byId("theme").addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    stored(next);
    setTheme(next);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    if (!stored()) setTheme(event.matches ? "dark" : "light");
  });
}

function wirePuzzle() {
  byId("tasks").addEventListener("change", async (event) => {
    const task = event.target.value, puzzle = await firstPuzzle(task);
    if (event.target.checked) showPuzzle(task, puzzle);
  });
  byId("samples").addEventListener("change", (event) => event.target.value && showPuzzle(state.task, event.target.value));
  byId("clear").addEventListener("click", () => {
    board.clear();
    board.grid.focus();
  });
  byId("take").addEventListener("click", () => {
    if (board.take(byId("text").value)) board.grid.focus();
  });
  byId("generate").addEventListener("click", async () => {
    try {
      byId("trouble").textContent = "";
      const { task, puzzle: before } = state, seed = Math.floor(Math.random() * 2 ** 31);
      let puzzle = await generate(task, seed);
      if (puzzle === before) puzzle = await generate(task, seed + 1); // a site has a few only
      if (state.task === task) showPuzzle(task, puzzle);
    } catch (error) {
      complain(error);
    }
  });
}

/** Copy the text of an element, and say so on the button for a moment. */
async function copyText(source, button, said) {
  try {
    await navigator.clipboard.writeText(byId(source).textContent);
  } catch {
    getSelection().selectAllChildren(byId(source)); // where the clipboard is closed: ready for Ctrl+C
    return;
  }
  byId("status").textContent = said;
  byId(button).textContent = "Copied";
  setTimeout(() => (byId(button).textContent = "Copy"), 1500);
}

/** Show the loaded models; a task without one cannot be chosen. */
async function showModels() {
  try {
    const loaded = await models();
    for (const task of learn(loaded)) {
      if (choiceOf(task)) continue; // models may be listed again
      byId("tasks").append(make("label", {}, make("input", { type: "radio", name: "task", value: task }), make("span", { text: titleOf(task) })));
    }
    byId("model").textContent = loaded.map(({ name }) => name).join(", ");
    byId("model").hidden = !loaded.length;
    for (const radio of document.querySelectorAll("[name=task]")) {
      radio.disabled = !servedTask(radio.value);
      radio.parentElement.title = radio.disabled ? "No model for this task is loaded" : "";
    }
    byId("trouble").textContent = "";
  } catch (error) {
    complain(error);
  }
}

/** A page from a server: the puzzle of the address, or the first sample. */
async function open() {
  const asked = location.hash;
  wirePuzzle();
  board.show(state.task, state.puzzle); // before anything has loaded, so that nothing jumps
  const [table, found] = await Promise.all([settingsTable().catch(complain), samples().catch(() => bundled)]);
  if (table) learnSettings(table);
  second.list();
  bundled = found;
  buildForm(byId("form"), (settings) => {
    useToken(byId("form").elements.token.value);
    // The numbers of a sample belong to its method.
    const { method, seed } = settings, other = !settingsChosen && method !== state.settings.method;
    state.settings = other ? { method, seed } : settings;
    if (other) fillForm(byId("form"), state.settings);
    settingsChosen = true;
    remember();
  });
  byId("form").elements.token.addEventListener("change", showModels);
  wireKeys();
  const linked = offered(asked);
  const typed = state.puzzle !== blankPuzzle(state.task);
  const first = typed ? state.puzzle : samplesOf(state.task)[0]?.puzzle ?? state.puzzle;
  if (linked) showLinked(linked);
  else showPuzzle(state.task, first);
  await showModels();
  if (!linked) await showAsked(asked);
}

function wireKeys() {
  byId("solve").addEventListener("click", (event) => event.detail < 2 && start()); // a double click counts once
  addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    if (event.repeat && event.target.id === "solve") event.preventDefault(); // a key held down counts once, too
    else if (!event.repeat && (event.ctrlKey || event.metaKey)) start();
  });
  addEventListener("hashchange", () => {
    const linked = offered(location.hash);
    if (linked) showLinked(linked);
  });
}

/** The state of a link to a task that the page offers; null for any other. */
function offered(hash) {
  const linked = readAddress(hash);
  return linked && choiceOf(linked.task) ? linked : null;
}

/** With the loaded models known: a link to a task of theirs, or a task that has a model. */
async function showAsked(asked) {
  const own = offered(asked), other = readAddress(asked);
  const [first] = document.querySelectorAll("[name=task]:enabled");
  if (own) showLinked(own);
  else if (other) switchTo(other.task, other.puzzle); // says that its model is missing
  else if (asked.includes("task=")) byId("fault").textContent = "The puzzle of this link cannot be read; this is a sample.";
  else if (first && !document.querySelector("[name=task]:checked:enabled")) showPuzzle(first.value, await firstPuzzle(first.value));
}

byId("copy").addEventListener("click", () => copyText("command", "copy", "Command copied."));
byId("copy-address").addEventListener("click", () => copyText("published", "copy-address", "Address copied."));
wireKeep(replay, (text) => { byId("status").classList.remove("unseen"); byId("status").textContent = text; }, complain);
wireTheme();
new ResizeObserver(() => sketch(byId("sketch"))).observe(byId("sketch"));
if (embedded) {
  document.body.classList.add("file");
  replay.load(JSON.parse(embedded.textContent));
} else open();
