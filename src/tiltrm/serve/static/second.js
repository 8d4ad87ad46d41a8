// A second method on the puzzle of the last run, beside it: its answer, its ancestry, its steps and its cost.

import { solve } from "./api.js";
import { describe, paintAncestry, readTheme } from "./ancestry.js";
import { decodedFrame } from "./colours.js";
import { byId, count, make, plural, reportClock } from "./dom.js";
import { difference, paintGrid, tokensOf } from "./grids.js";
import { methodWords, methods } from "./state.js";

export const CLOSED = "The connection closed before the end of the run; try again.";

export class SecondRun {
  /** `replay` holds the first run; `busy()` says whether one is under way. */
  constructor(replay, busy) {
    Object.assign(this, { replay, busy, running: null, run: null, frames: [], shown: null, reportDue: reportClock() });
    byId("second-run").addEventListener("click", () => (this.running ? this.running.abort() : this.start()));
    new ResizeObserver(() => this.redraw()).observe(byId("second-result"));
  }

  /** List the methods, once they are known. */
  list() {
    byId("second-method").replaceChildren(...methods().map((name) => make("option", { value: name, text: methodWords(name) })));
  }

  /** Forget the last comparison, because a run of this method begins; choose the usual other method. */
  clear(method) {
    this.running?.abort();
    this.finish();
    this.shown = null;
    byId("second-result").hidden = true;
    byId("second-method").value = method === "adaptive" ? "guided" : "adaptive";
  }

  finish() {
    this.running = null;
    byId("second-run").textContent = "Compare";
  }

  async start() {
    const { run } = this.replay;
    if (!run || this.busy()) return this.say("Wait for the first run to end, or stop it.");
    const method = byId("second-method").value;
    const body = { puzzles: [run.puzzle], task: run.task, method, seed: run.seed, baseline: false };
    const own = (this.running = new AbortController());
    Object.assign(this, { frames: [], shown: null });
    byId("second-run").textContent = "Stop";
    this.say(`${method}: waiting for the first step …`);
    try {
      let complete = false;
      for await (const [name, data] of solve(body, own.signal)) complete = this.receive(name, data, method) || complete;
      if (!complete) throw new Error(CLOSED);
    } catch (error) {
      if (this.running === own) this.say(error.name === "AbortError" ? "Stopped." : error.message);
    } finally {
      if (this.running === own) this.finish();
    }
  }

  say(text) {
    byId("second-result").hidden = false;
    byId("second-words").textContent = text;
  }

  /** One event of the stream; true where it is the last. */
  receive(name, data, method) {
    if (name === "error") throw new Error(data.error);
    if (name === "start") {
      this.run = data;
      this.show({ tokens: tokensOf(data, data.puzzle) });
    }
    if (name === "step") {
      this.frames.push(decodedFrame(this.run, data));
      this.show({ tokens: this.frames.at(-1).leading, entropy: data.entropy });
      if (this.reportDue(data.step === 1)) this.say(
        `${method}: outer step ${data.step} of at most ${data.steps}, ${plural(data.particles, "particle")}, ${count(data.evaluations)} evaluations`);
    }
    if (name === "result") this.conclude(data, method);
    return name === "result";
  }

  show(grid) {
    this.shown = grid;
    this.redraw();
  }

  /** Draw everything again, after a frame or a change of size or theme. */
  redraw() {
    if (!this.shown) return;
    readTheme();
    paintGrid(byId("second-grid"), this.run, this.shown);
    paintAncestry(byId("second-ancestry"), this.frames);
    byId("second-ancestry").setAttribute("aria-label", describe(this.frames));
  }

  conclude(result, method) {
    if (result.error) throw new Error(result.error);
    const first = this.replay.result, { leading } = this.frames.at(-1);
    const tokens = result.answer ? tokensOf(this.run, result.answer, leading) : leading;
    const differs = first?.answer ? difference(tokens, this.replay.answer) : new Set();
    const verdict = result.abstained ? "gives no answer" : result.solved_by_rules === null ? "answers" : result.solved_by_rules ? "solves it" : "does not solve it";
    const apart = differs.size ? ` ${plural(differs.size, "cell")} ${differs.size === 1 ? "differs" : "differ"} from the answer above.` : " The same answer as above.";
    this.show({ tokens, differs });
    byId("second-grid").setAttribute("aria-label", `The answer of ${method}: ${verdict}`);
    byId("second-words").textContent =
      `${method} ${verdict}: ${plural(result.outer_steps, "outer step")}, ${plural(result.particles, "particle")}, ` +
      `${count(result.evaluations)} evaluations${first ? ` (above: ${count(first.evaluations)})` : ""}, ` +
      `${result.seconds.toFixed(1)} s.${first?.answer && result.answer ? apart : ""}`;
  }
}
