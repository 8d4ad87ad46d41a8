// A run on the screen: it grows while frames arrive, and a slider goes back and forth in it.

import { describe, paintAncestry, readTheme, resampled } from "./ancestry.js";
import { drawChart, across, figure, makeCharts } from "./charts.js";
import { decoded, decodedFrame, sizeWords } from "./colours.js";
import { byId, make, plural } from "./dom.js";
import { difference, paintGrid, paintParticles, tokensOf } from "./grids.js";
import { baselineWords, figures, frameWords, singleTrajectory, uncertain, verdict, waiting } from "./verdict.js";

const WHOLE = 6000; // milliseconds that a replay should take at most
const QUICKEST = 40, SLOWEST = 220; // milliseconds a frame

export class Replay {
  /** `runCloud(run)` is called to run a cloud on the puzzle of this run. */
  constructor(runCloud) {
    this.runCloud = runCloud;
    this.ancestry = figure("Ancestry: a band for each particle, as wide as its weight",
      make("canvas", { class: "ancestry", role: "img", "aria-label": "Ancestry" }));
    this.charts = makeCharts();
    byId("charts").append(this.ancestry.element, ...this.charts.map((chart) => chart.element));
    for (const { plot } of [this.ancestry, ...this.charts]) {
      plot.addEventListener("pointerdown", (event) => this.point(event, plot));
      plot.addEventListener("pointermove", (event) => event.buttons && this.point(event, plot));
    }
    byId("slider").addEventListener("input", (event) => this.go(event.target.value - 1));
    byId("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    const resized = new ResizeObserver(() => this.redraw());
    for (const part of ["watch", "story"]) resized.observe(byId(part));
    this.begin(null);
  }

  /** Forget the last run; `run` is the start event of the next. */
  begin(run) {
    this.pause();
    Object.assign(this, { run, frames: [], at: -1, result: null, baseline: null, stale: false, over: false });
    byId("baseline").hidden = byId("watch").hidden = byId("story").hidden = !run;
    byId("save").disabled = true;
    if (!run) return;
    this.say("card", "Running …", [waiting(run)]);
    this.count({ evaluations: 0, outer_steps: 0 });
    byId("command").textContent = run.command;
    byId("command-note").textContent = run.note ?? "";
    byId("command-note").hidden = !run.note;
    this.publish(null);
    byId("baseline-words").textContent = "The model as published, one trajectory without noise, runs for comparison.";
    byId("legend").hidden = Boolean(run.colours);
    byId("asked").hidden = !run.colours; // an answer of other tasks has the clues in it
    byId("doubt-words").textContent = run.colours ? "larger its ring" : "stronger its shade";
    byId("slider").max = 1;
    byId("where").textContent = "before the first step";
    byId("particles").replaceChildren();
    paintGrid(byId("cloud"), run, { tokens: tokensOf(run, run.puzzle) });
    this.drawQuestion();
    this.drawBaseline();
    this.draw();
  }

  say(kind, title, sentences, ...more) {
    byId("verdict").className = kind;
    byId("verdict-title").textContent = title;
    byId("words").replaceChildren(...sentences.map((text) => make("p", { text })), ...more);
  }

  count(known) {
    byId("figures").replaceChildren(...figures(known).map(([name, value]) =>
      make("div", {}, make("dt", { text: name }), make("dd", { text: value }))));
  }

  /** One more frame. Unless paused, the replay follows the frames as they arrive. */
  add(frame) {
    this.frames.push(decodedFrame(this.run, frame));
    byId("slider").max = this.frames.length;
    this.count({ evaluations: frame.evaluations, outer_steps: frame.step });
    this.stale = true;
    if (this.frames.length === 1) {
      this.go(0);
      this.play();
    }
  }

  /** The whole of a run at once, from a file. */
  load({ start, steps, baseline, result }) {
    this.begin(start);
    for (const frame of steps) this.add(frame);
    this.pause();
    if (baseline) this.compare(baseline);
    this.conclude(result);
    this.end();
    this.go(this.frames.length - 1);
  }

  conclude(result) {
    this.result = result;
    this.over = true;
    const { title, good, sentences } = verdict(this.run, result, this.answer);
    this.say(`card ${good ? "good" : "bad"}`, title, sentences, ...this.more());
    if (!result.error) this.count(result);
    byId("save").disabled = Boolean(result.error);
    this.publish(result.address);
    byId("baseline").hidden = Boolean(result.error); // it may still be running
    this.redraw();
    return `${title}. ${sentences.join(" ")}`;
  }

  /** The address of the puzzle, to give it to others. */
  publish(address) {
    byId("published-part").hidden = !address;
    byId("published").textContent = address ?? "";
  }

  /** A run that ended without a result; its steps so far can be replayed. */
  interrupt(title) {
    if (!this.run || this.over) return;
    this.over = true;
    this.pause();
    this.say("card", title, ["There is no answer. The steps so far can be replayed."]);
  }

  /** Nothing more comes: a deterministic run that is not here has no place. */
  end() {
    byId("baseline").hidden = !this.comparable;
  }

  /** Whether there are two answers to compare. */
  get comparable() {
    return Boolean(this.baseline && this.result && !this.result.error);
  }

  /** After a run without a cloud: a button that runs one. */
  more() {
    const why = singleTrajectory(this.run, this.result);
    if (!why) return [];
    const button = make("button", { type: "button", id: "run-cloud", text: "Run 16 particles" });
    button.addEventListener("click", () => this.runCloud(this.run));
    return [make("p", { class: "more" }, `${why} `, button)];
  }

  /** The deterministic run; it may come after the result. */
  compare(baseline) {
    this.baseline = { ...baseline, tokens: decoded(this.run, baseline.tokens) };
    if (this.comparable) this.drawBaseline();
  }

  /** The run as `solve --html` writes it; null before its result. */
  get recorded() {
    const { run, frames, baseline, result } = this;
    return result && !result.error ? { start: run, steps: frames, baseline, result } : null;
  }

  play() {
    if (!this.frames.length) return;
    if (this.over && this.at >= this.frames.length - 1) this.go(0, true);
    this.still = !this.over && matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.next();
    byId("play").textContent = "❚❚";
    byId("play").setAttribute("aria-label", "Pause");
  }

  next() {
    const pace = Math.min(Math.max(WHOLE / this.frames.length, QUICKEST), SLOWEST);
    this.timer = setTimeout(() => {
      const last = this.frames.length - 1;
      if (this.at < last) this.go(this.still ? last : this.at + 1, true);
      else if (this.over) return this.pause();
      this.next();
    }, pace);
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    byId("play").textContent = "▶";
    byId("play").setAttribute("aria-label", "Play");
  }

  /** Show frame `at`; unless `playing`, this pauses the replay. */
  go(at, playing = false) {
    if (!playing && this.frames.length > 1) this.pause();
    this.at = Math.min(Math.max(Number(at), 0), this.frames.length - 1);
    const frame = this.frames[this.at];
    if (!frame) return;
    byId("slider").value = this.at + 1;
    byId("slider").setAttribute("aria-valuetext", frameWords(frame));
    this.paint(frame);
    if (this.stale) this.draw();
    this.pointAt(frame);
  }

  /** The answer of the run: a stopping rule may have chosen a particle that did not lead. */
  get answer() {
    const leading = this.frames.at(-1)?.leading ?? [];
    return this.result?.answer ? tokensOf(this.run, this.result.answer, leading) : leading;
  }

  /** The grids of one frame. */
  paint(frame) {
    const last = this.result && this.at === this.frames.length - 1;
    const doubt = new Set(last ? uncertain(this.run, this.result, this.answer) : []);
    const tokens = last ? this.answer : frame.leading;
    const settled = last && !doubt.size; // a final answer without an uncertain cell has no shade
    paintGrid(byId("cloud"), this.run, { tokens, entropy: settled ? undefined : frame.entropy, doubt });
    const size = sizeWords(this.run, tokens);
    byId("where").textContent = [`step ${frame.step}`, plural(frame.particles, "particle"), size].filter(Boolean).join(" · ");
    byId("cloud").setAttribute("aria-label", `The ${last ? "" : "leading "}answer at ${frameWords(frame)}${size && `: ${size}`}`);
    paintParticles(byId("particles"), this.run, frame);
  }

  /** The drawings over all frames: the ancestry and the charts. */
  draw() {
    this.stale = false;
    readTheme();
    paintAncestry(this.ancestry.drawing, this.frames);
    this.ancestry.drawing.setAttribute("aria-label", describe(this.frames));
    for (const chart of this.charts) drawChart(chart, this.frames);
    for (const { cursor, value } of [this.ancestry, ...this.charts]) {
      cursor.hidden = !this.frames.length;
      if (cursor.hidden) value.textContent = "";
    }
  }

  /** The cursors of the charts, and their values at this frame. */
  pointAt(frame) {
    const left = `${100 * across(this.at, this.frames.length)}%`;
    for (const { cursor } of [this.ancestry, ...this.charts]) cursor.style.left = left;
    for (const chart of this.charts) chart.value.textContent = chart.say(frame);
    const chosen = new Set(frame.ancestors).size;
    this.ancestry.value.textContent = resampled(frame) ? `${chosen} of ${frame.particles} chosen` : "no resampling";
  }

  /** Draw everything again, after a change of size or theme. */
  redraw() {
    if (!this.run || !this.frames.length) return;
    this.draw();
    this.go(this.at, true);
    this.drawQuestion();
    this.drawBaseline();
  }

  /** The input of a task whose answers do not hold it, in a file, which has no board. */
  drawQuestion() {
    paintGrid(byId("question"), this.run, { tokens: tokensOf(this.run, this.run.puzzle) });
  }

  /** The puzzle, until both runs are done; then the baseline's answer. */
  drawBaseline() {
    if (!this.comparable) {
      return paintGrid(byId("baseline-grid"), this.run, { tokens: tokensOf(this.run, this.run.puzzle) });
    }
    const { tokens } = this.baseline;
    const differs = this.baseline.solved ? new Set() : difference(tokens, this.answer);
    byId("baseline-words").textContent = baselineWords(this.baseline, this.result, this.answer);
    byId("baseline-grid").setAttribute("aria-label",
      this.baseline.solved ? "Its answer, a valid solution" : `Its answer${this.baseline.solved === null ? "" : ", not a solution"}; ${differs.size} cells differ`);
    paintGrid(byId("baseline-grid"), this.run, { tokens, differs });
  }

  /** A click or a drag on a chart goes to the frame beneath it. */
  point(event, plot) {
    const { left, width } = plot.getBoundingClientRect();
    const share = ((event.clientX - left) / width - 0.01) / 0.98;
    this.go(Math.round(share * (this.frames.length - 1)));
  }
}
