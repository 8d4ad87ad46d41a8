// The page: connects the board, the form, the server and the replay.

import { Refusal, generate, models, samples, settingsTable, solve, useToken } from "./api.js";
import { AnyBoard } from "./boards.js";
import { byId, count, isDark, make, plural } from "./dom.js";
import { askToken, buildForm, fillForm } from "./form.js";
import { wireKeep } from "./keep.js";
import { Replay } from "./replay.js";
import { SecondRun } from "./second.js";
import { sketch } from "./sketch.js";
import { freshState, learnSettings, readAddress, writeAddress } from "./state.js";
import { blankPuzzle, learn, servedTask, titleOf } from "./tasks.js";

const THEME = "tiltrm-theme";
const SPOKEN = 2500; // milliseconds between two spoken reports of progress

const embedded = byId("replay"); // the data of `solve --html`: no server and no form
const replay = new Replay(runCloud);
const second = new SecondRun(replay, () => Boolean(running));
let state = freshState();
let running = null; // the AbortController of the run under way
let spoken = 0;

const board = new AnyBoard(byId("board"), byId("pad"), (puzzle, sentence) => {
  state.puzzle = puzzle;
  byId("fault").textContent = sentence;
  byId("samples").value = "";
  remember();
}, switchTo);

/** The task and the puzzle of a pasted address; false where no model is loaded for it. */
function switchTo(task, puzzle) {
  if (servedTask(task)) show({ ...state, task, puzzle });
  else byId("fault").textContent = `No model for ${titleOf(task)} is loaded; tiltrm serve --model pencil loads one.`;
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
  board.show(state.task, state.puzzle);
  byId("fault").textContent = state.puzzle === blankPuzzle(state.task) ? "" : board.fault;
  fillForm(byId("form"), state.settings);
  listSamples();
  remember();
}

let bundled = { sudoku: [], maze: [] };

const samplesOf = (task) => (Object.hasOwn(bundled, task) ? bundled[task] : []);

/** The first state of a task: a sample, else a generated puzzle, else an empty board. */
async function beginning(task) {
  const { puzzle: nothing, ...fresh } = freshState(task);
  const puzzle = samplesOf(task)[0]?.puzzle ?? (await generate(task, 0).catch(() => nothing));
  return { ...fresh, puzzle };
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
  if (!running) run({ task, puzzle, settings: { method: "guided", seed, outer_steps: 16 } });
}

async function run({ task, puzzle, settings }) {
  byId("trouble").textContent = "";
  second.clear();
  byId("status").classList.remove("unseen");
  byId("status").textContent = "Waiting for the first step …";
  running = new AbortController();
  setRunning(true);
  try {
    const body = { puzzles: [puzzle], task: servedTask(task) ?? task, ...settings, baseline: true };
    let complete = false;
    for await (const [name, data] of solve(body, running.signal)) complete = receive(name, data) || complete;
    if (!complete) throw new Refusal("The connection closed before the end of the run; try again.", 0);
  } catch (error) {
    const stopped = error.name === "AbortError";
    replay.interrupt(stopped ? "Stopped" : "Interrupted");
    byId("status").textContent = stopped ? "Stopped." : "";
    complain(error);
  } finally {
    running = null;
    setRunning(false);
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
  }
  else if (name === "error") throw new Refusal(data.error, 200);
  return name === "result";
}

/** Progress in words, seldom enough for a screen reader. */
function progress(frame) {
  const now = performance.now();
  if (now - spoken < SPOKEN && frame.step > 1) return;
  spoken = now;
  byId("status").textContent =
    `Outer step ${frame.step}: ${plural(frame.particles, "particle")}, ${count(frame.evaluations)} evaluations.`;
}

function setRunning(on) {
  byId("solve").textContent = on ? "Stop" : "Solve and watch";
  byId("solve").classList.toggle("stop", on);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light theme" : "Dark theme"; // what a click switches to
  replay.redraw();
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
    const next = await beginning(event.target.value);
    if (event.target.checked) show({ ...next, settings: state.settings });
  });
  byId("samples").addEventListener("change", (event) => event.target.value && show({ ...state, puzzle: event.target.value }));
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
      const puzzle = await generate(state.task, Math.floor(Math.random() * 2 ** 31));
      show({ ...state, puzzle });
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
    state.settings = settings;
    remember();
  });
  byId("form").elements.token.addEventListener("change", showModels);
  wireKeys();
  const linked = offered(asked);
  const typed = state.puzzle !== blankPuzzle(state.task);
  const first = typed ? state.puzzle : samplesOf(state.task)[0]?.puzzle ?? state.puzzle;
  show(linked ?? { ...state, puzzle: first });
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
    if (linked) show(linked);
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
  if (own) show(own);
  else if (other) switchTo(other.task, other.puzzle); // says that its model is missing
  else if (asked.includes("task=")) byId("fault").textContent = "The puzzle of this link cannot be read; this is a sample.";
  else if (first && !document.querySelector("[name=task]:checked:enabled")) show(await beginning(first.value));
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
