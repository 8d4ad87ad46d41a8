// A second method on the puzzle of the last run, beside it: its answer, its steps and its cost.

import { solve } from "./api.js";
import { byId, count, make, plural } from "./dom.js";
import { difference, paintGrid, tokensOf } from "./grids.js";
import { methods } from "./state.js";

export class SecondRun {
  /** `replay` holds the first run; `busy()` says whether one is under way. */
  constructor(replay, busy) {
    Object.assign(this, { replay, busy, running: null });
    byId("second-run").addEventListener("click", () => (this.running ? this.running.abort() : this.start()));
  }

  /** List the methods, once they are known; the usual other one first. */
  list() {
    const names = [...methods()].sort((a, b) => (b === "guided") - (a === "guided"));
    byId("second-method").replaceChildren(...names.map((name) => make("option", { value: name, text: name })));
  }

  /** Forget the last comparison: another puzzle is run. */
  clear() {
    this.running?.abort();
    byId("second-result").hidden = true;
  }

  async start() {
    const { run } = this.replay;
    if (!run || this.busy()) return this.say("Wait for the first run to end.");
    const method = byId("second-method").value;
    const body = { puzzles: [run.puzzle], task: run.task, method, seed: run.seed, baseline: false };
    this.running = new AbortController();
    byId("second-run").textContent = "Stop";
    this.say(`${method}: waiting for the first step …`);
    try {
      for await (const [name, data] of solve(body, this.running.signal)) this.receive(name, data, method);
    } catch (error) {
      this.say(error.name === "AbortError" ? "Stopped." : error.message);
    } finally {
      this.running = null;
      byId("second-run").textContent = "Run beside";
    }
  }

  say(text) {
    byId("second-result").hidden = false;
    byId("second-words").textContent = text;
  }

  receive(name, data, method) {
    if (name === "error") throw new Error(data.error);
    if (name === "start") this.run = data;
    if (name === "step") {
      paintGrid(byId("second-grid"), this.run, { tokens: data.leading, entropy: data.entropy });
      byId("second-words").textContent =
        `${method}: outer step ${data.step}, ${plural(data.particles, "particle")}, ${count(data.evaluations)} evaluations`;
      this.leading = data.leading;
    }
    if (name === "result") this.conclude(data, method);
  }

  conclude(result, method) {
    const first = this.replay.result;
    const tokens = result.answer ? tokensOf(this.run, result.answer, this.leading) : this.leading;
    const differs = first?.answer ? difference(tokens, this.replay.answer) : new Set();
    const verdict = result.abstained ? "gives no answer" : result.solved_by_rules === null ? "answers" : result.solved_by_rules ? "solves it" : "does not solve it";
    const apart = differs.size ? ` ${plural(differs.size, "cell")} differ from the answer above.` : " The same answer as above.";
    paintGrid(byId("second-grid"), this.run, { tokens, differs });
    byId("second-grid").setAttribute("aria-label", `The answer of ${method}: ${verdict}`);
    byId("second-words").textContent =
      `${method} ${verdict}: ${plural(result.outer_steps, "outer step")}, ${plural(result.particles, "particle")}, ` +
      `${count(result.evaluations)} evaluations${first ? ` (above: ${count(first.evaluations)})` : ""}, ` +
      `${result.seconds.toFixed(1)} s.${first?.answer && result.answer ? apart : ""}`;
  }
}
