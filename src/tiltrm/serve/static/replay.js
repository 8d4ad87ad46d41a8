// A run on the screen: it grows while frames arrive, and can be walked back and forth.

import { drawChart, across, figure, makeCharts } from "./charts.js";
import { difference, paintGrid, paintParticles, tokensOf } from "./cloud.js";
import { byId, make, plural } from "./dom.js";
import { describe, paintRiver, readTheme, resampled } from "./river.js";
import { alone, beside, doubtful, figures, frameWords, verdict, waiting } from "./words.js";

const WHOLE = 6000; // milliseconds that a replay should take at most
const QUICKEST = 40, SLOWEST = 220; // milliseconds a frame

export class Replay {
  /** `crowd(run)` is called where somebody wants to see a cloud on the puzzle of this run. */
  constructor(crowd) {
    this.crowd = crowd;
    this.river = figure("Ancestry: a stream for each particle, as wide as its weight",
      make("canvas", { class: "river", role: "img", "aria-label": "Ancestry" }));
    this.charts = makeCharts();
    byId("charts").append(this.river.element, ...this.charts.map((chart) => chart.element));
    for (const { plot } of [this.river, ...this.charts]) {
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
    if (!run) return;
    this.say("card", "Thinking …", [waiting(run)]);
    this.count({ evaluations: 0, outer_steps: 0 });
    byId("command").textContent = run.command;
    byId("baseline-words").textContent = "It runs beside the cloud, for comparison.";
    byId("slider").max = 1;
    byId("where").textContent = "before the first step";
    byId("particles").replaceChildren();
    paintGrid(byId("cloud"), run, { tokens: tokensOf(run, run.puzzle) });
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

  /** One more frame. Unless paused, the replay runs after the frames as they arrive. */
  add(frame) {
    this.frames.push(frame);
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
    this.go(this.frames.length - 1);
  }

  conclude(result) {
    this.result = result;
    this.over = true;
    const { title, good, sentences } = verdict(this.run, result);
    this.say(`card ${good ? "good" : "bad"}`, title, sentences, ...this.more());
    if (!result.error) this.count(result);
    byId("baseline").hidden = !this.baseline || Boolean(result.error);
    this.redraw();
    return `${title}. ${sentences.join(" ")}`;
  }

  /** A run that ended without a result: what has come of it can still be watched. */
  breakOff(title) {
    if (!this.run || this.over) return;
    this.over = true;
    this.pause();
    this.say("card", title, ["There is no answer. What has come so far can still be watched."]);
    byId("baseline").hidden = true;
  }

  /** The way to a cloud where there was none. */
  more() {
    const why = alone(this.run, this.result);
    if (!why) return [];
    const button = make("button", { type: "button", id: "crowd", text: "Watch 16 of them" });
    button.addEventListener("click", () => this.crowd(this.run));
    return [make("p", { class: "more" }, `${why} `, button)];
  }

  compare(baseline) {
    this.baseline = baseline;
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

  /** Show frame `at`; whoever goes there by hand stops the playing. */
  go(at, playing = false) {
    if (!playing && this.frames.length > 1) this.pause();
    this.at = Math.min(Math.max(Number(at), 0), this.frames.length - 1);
    const frame = this.frames[this.at];
    if (!frame) return;
    byId("slider").value = this.at + 1;
    byId("slider").setAttribute("aria-valuetext", frameWords(frame));
    byId("where").textContent = `step ${frame.step} · ${plural(frame.particles, "particle")}`;
    this.paint(frame);
    if (this.stale) this.draw();
    this.pointAt(frame);
  }

  /** The answer given: a judge may have chosen a particle that did not lead. */
  get answer() {
    const { leading } = this.frames.at(-1);
    return this.result?.answer ? tokensOf(this.run, this.result.answer, leading) : leading;
  }

  /** The grids of one frame. */
  paint(frame) {
    const last = this.result && this.at === this.frames.length - 1;
    const doubt = new Set(last ? doubtful(this.run, this.result) : []);
    const tokens = last ? this.answer : frame.leading;
    paintGrid(byId("cloud"), this.run, { tokens, entropy: frame.entropy, doubt });
    byId("cloud").setAttribute("aria-label", `The ${last ? "" : "leading "}answer at ${frameWords(frame)}`);
    paintParticles(byId("particles"), this.run, frame);
  }

  /** What runs over all frames: the river and the charts. */
  draw() {
    this.stale = false;
    readTheme();
    paintRiver(this.river.drawing, this.frames);
    this.river.drawing.setAttribute("aria-label", describe(this.frames));
    for (const chart of this.charts) drawChart(chart, this.frames);
    for (const { cursor, value } of [this.river, ...this.charts]) {
      cursor.hidden = !this.frames.length;
      if (cursor.hidden) value.textContent = "";
    }
  }

  /** The cursors of the charts, and what each says at this frame. */
  pointAt(frame) {
    const left = `${100 * across(this.at, this.frames.length)}%`;
    for (const { cursor } of [this.river, ...this.charts]) cursor.style.left = left;
    for (const chart of this.charts) chart.value.textContent = chart.say(frame);
    const chosen = new Set(frame.ancestors).size;
    this.river.value.textContent = resampled(frame) ? `${chosen} of ${frame.particles} chosen` : "all go on";
  }

  /** Everything anew: another size, or another theme. */
  redraw() {
    if (!this.run || !this.frames.length) return;
    this.draw();
    this.go(this.at, true);
    this.drawBaseline();
  }

  /** The puzzle, until its run and the cloud's are both done. */
  drawBaseline() {
    if (!this.baseline || !this.result || this.result.error) {
      return paintGrid(byId("baseline-grid"), this.run, { tokens: tokensOf(this.run, this.run.puzzle) });
    }
    const { tokens } = this.baseline;
    const differs = this.baseline.solved ? new Set() : difference(tokens, this.answer);
    byId("baseline-words").textContent = beside(this.baseline, this.result, this.answer);
    byId("baseline-grid").setAttribute("aria-label",
      this.baseline.solved ? "Its answer, right by the rules" : `Its answer, not right; ${differs.size} cells differ`);
    paintGrid(byId("baseline-grid"), this.run, { tokens, differs });
  }

  /** A click or a drag on a chart goes to the frame beneath it. */
  point(event, plot) {
    const { left, width } = plot.getBoundingClientRect();
    const share = ((event.clientX - left) / width - 0.01) / 0.98;
    this.go(Math.round(share * (this.frames.length - 1)));
  }
}
