// The staged search of one puzzle: tiltrm/explore/search.py, step.py and result.py. `model` does the arithmetic of
// the network; everything that decides is here.

import { banked } from "./bank.js";
import { entropy, marginals, probabilities } from "./beliefs.js";
import { statedConfidence } from "./confidence.js";
import { GUESSING, addVotes, fillIn } from "./guesses.js";
import { counters, derive, fillNormals, puzzleKey } from "./keys.js";
import { SITES, outerSteps } from "./plan.js";
import { SELECTORS, logSigmoid, sameTokens } from "./select.js";
import { effectiveSize, equalWeights, isDead, normalise, resample } from "./weights.js";

const RESAMPLING = 1n << 40n; // takes a particle's place in the key of the resampler
const BLOCK = 3 << 16; // numbers in one tensor of a call of the network: four Sudoku trajectories, so that a stop is heard soon
const MEMORY = /memory|allocat|bad_alloc/i; // in the words of a failed call
const fround = Math.fround;

/** A symmetry {source, names} undone on an answer: the cells go back, the ids get their old names. */
export function undo({ source, names }, tokens) {
  const old = new Uint8Array(names.length);
  names.forEach((name, id) => (old[name] = id));
  const answer = new Uint8Array(tokens.length);
  source.forEach((from, cell) => (answer[from] = old[tokens[cell]]));
  return answer;
}

const counts = (numbers) => numbers.every((number, place) => number === place);
const isIdentity = ({ source, names }) => counts(source) && counts(names);

export const moved = ({ source, names }, tokens) => Uint8Array.from(source, (from) => names[tokens[from]]);

export class Search {
  /**
   * `model`: {positions, width, inner_steps, cells, vocabulary, first_token, first, embed(tokens, rows), step(...)}.
   * `search`: what `buildSearch` made. `views`: of every stage a symmetry per particle, or null. `task`: its rules.
   */
  constructor(model, search, task, tokens, seed, views = null) {
    Object.assign(this, { model, search, task, tokens, views: search.plan.symmetric_views ? views : null });
    this.key = derive(puzzleKey([...tokens]), seed);
    this.stages = search.plan.stages;
    this.steps = outerSteps(this.stages);
    this.size = model.positions * model.width;
    this.counters = counters(this.size / 2);
    this.block = Math.max(1, Math.floor(BLOCK / this.size));
    this.evaluations = 0;
    this.votes = null; // of the stages so far, for guesses: (cell)(token)
  }

  /** Every outer step: yields its report; the last one has `result`. */
  async *run() {
    let step = 0;
    for (let number = 0; number < this.stages.length; number++) {
      await this.begin(number);
      const { outer_steps: steps } = this.stages[number];
      for (let own = 1; own <= steps; own++) {
        const info = await this.step(++step, number);
        if (own === steps) this.votes = this.counted(info, number);
        this.evaluations += info.particles.length * (this.model.inner_steps + 1);
        info.evaluations = this.evaluations;
        if (this.search.visited) info.bank = this.bank = banked(this.bank, info, this.search.visited(info));
        info.result = this.finished(info, number);
        yield info;
        if (info.result) return;
      }
    }
  }

  /** Grow the cloud where a stage begins: particles that continue, then fresh ones, equal weights. */
  async begin(number) {
    const { particles, continues } = this.stages[number];
    const { model, cloud, size } = this;
    if (this.views) {
      const rows = this.views[number].slice(0, particles);
      if (rows.length < particles) throw new Error(`Expected at most ${rows.length} particles with symmetric views, got ${particles}.`);
      const puzzles = this.guessed(number);
      this.inputs = await model.embed(rows.map((view, k) => moved(view, puzzles[k])));
      this.view = rows;
      this.unchanged = rows.map(isIdentity);
    } else this.inputs ??= await model.embed([this.tokens]);
    const kept = cloud && !this.search.plan.symmetric_views ? Math.min(continues ? cloud.score.length : 1, particles) : 0;
    const half = (name) => {
      const grown = new Float32Array(particles * size);
      if (kept) grown.set(cloud[name].subarray(0, kept * size));
      for (let at = kept * size; at < grown.length; at += model.width) grown.set(model.first[name], at);
      return grown;
    };
    const first = new Uint8Array(this.tokens.length).fill(model.first_token);
    const dead = cloud ? cloud.logWeights.slice(0, kept).map((value) => value === -Infinity) : [];
    this.cloud = {
      answer: half("answer"), latent: half("latent"),
      logWeights: dead.includes(true)
        ? normalise(Array.from({ length: particles }, (_, k) => (dead[k] ? -Infinity : 0)))
        : equalWeights(particles),
      score: Array.from({ length: particles }, (_, k) => (k < kept ? cloud.score[k] : 0)),
      answers: Array.from({ length: particles }, (_, k) => (k < kept ? cloud.answers[k] : this.seen(first, k))),
    };
  }

  /** The puzzle as each particle of a stage finds it. */
  guessed(number) {
    const { particles, guesses } = this.stages[number];
    if (!guesses || !this.votes) return Array(particles).fill(this.tokens);
    return fillIn(this.tokens, this.votes, derive(this.key, GUESSING, number), particles, guesses, this.task.clues);
  }

  /** The votes with those of a stage that ends, null if no later one guesses. */
  counted({ answers, logWeights }, number) {
    if (!this.stages.slice(number + 1).some(({ guesses }) => guesses)) return null;
    const said = answers.map((answer) => this.task.clues.inAnswer(this.tokens, answer));
    return addVotes(this.votes, said, logWeights.map((weight) => weight > -Infinity), this.model.vocabulary);
  }

  /** An answer as it is for the puzzle itself. */
  seen(tokens, particle) {
    return this.views ? undo(this.view[particle], tokens) : tokens;
  }

  /** One outer step: propose, weigh, resample (Algorithm 1, lines 11-18). */
  async step(number, stage) {
    const before = this.cloud;
    const { state, logits, halt } = await this.propose(before, number);
    const particles = before.score.map((_, k) => k);
    const answers = particles.map((k) => this.seen(this.decoded(logits, k), k));
    const context = {
      puzzle: this.tokens, task: this.task, state, previous: before, answers, halt, logits, particles,
      cells: this.model.cells, vocabulary: this.model.vocabulary,
      unchanged: this.unchanged ?? particles.map(() => true),
      settled: answers.map((answer, k) => sameTokens(answer, before.answers[k])),
    };
    const { logWeights, score } = this.weigh(before, context, number);
    const key = derive(this.key, RESAMPLING, number);
    const [ancestors, after] = resample(logWeights, key, this.search.resampling);
    this.cloud = {
      answer: this.take(state.answer, ancestors), latent: this.take(state.latent, ancestors),
      logWeights: after, score: ancestors.map((k) => score[k]), answers: ancestors.map((k) => answers[k]),
    };
    return { ...context, step: number, steps: this.steps, stage, logWeights, score, ancestors, ess: effectiveSize(logWeights) };
  }

  /** The next state of every particle, its logits and its halt logit, in calls of a bounded size. */
  async propose({ answer, latent, score }, step) {
    const { model, size } = this;
    const rows = score.length, sites = model.inner_steps + 1;
    const state = { answer: new Float32Array(rows * size), latent: new Float32Array(rows * size) };
    const logits = new Float32Array(rows * model.cells * model.vocabulary);
    const halt = [];
    for (let first = 0, count; first < rows; first += count) {
      await this.pause?.();
      count = Math.min(this.block, rows - first);
      const part = (half) => half.slice(first * size, (first + count) * size);
      const old = { answer: part(answer), latent: part(latent) };
      const noise = new Float32Array(count * sites * size);
      for (let k = 0; k < count; k++) this.addNoise(first + k, step, k, old, noise);
      const found = await model.step({ inputs: this.inputs, first, count, ...old, noise }).catch((error) => this.smaller(count, error));
      if (!found) {
        count = 0; // the same again in smaller calls
        continue;
      }
      state.answer.set(found.answer, first * size);
      state.latent.set(found.latent, first * size);
      logits.set(found.logits, first * model.cells * model.vocabulary);
      halt.push(...found.halt);
    }
    return { state, logits, halt };
  }

  /** Where memory ran out in a call of several particles: calls of half as many from now on. */
  smaller(count, error) {
    if (count === 1 || !MEMORY.test(error.message)) throw error;
    this.block = Math.ceil(count / 2);
    this.note?.(`Memory is short, so ${this.block === 1 ? "one particle is" : `${this.block} particles are`} computed at a time.`);
    return null;
  }

  /** The noise of one particle: of the state before the step into `old`, of its updates into `noise`. */
  addNoise(particle, step, row, old, noise) {
    const { size, model } = this;
    const key = derive(this.key, particle, step);
    const scale = (site) => fround(this.search.noise({ site, step, particle }));
    for (const [half, site] of [["answer", SITES.START_ANSWER], ["latent", SITES.START_LATENT]]) {
      const own = scale(site);
      if (!own) continue;
      const drawn = new Float32Array(size);
      fillNormals(drawn, 0, derive(key, site), own, this.counters);
      for (let i = 0; i < size; i++) old[half][row * size + i] += drawn[i];
    }
    for (let m = 0; m <= model.inner_steps; m++) {
      const site = m < model.inner_steps ? SITES.INNER + m : SITES.ANSWER;
      const own = scale(site);
      if (own) fillNormals(noise, (row * (model.inner_steps + 1) + m) * size, derive(key, site), own, this.counters);
    }
  }

  /** The most likely token of every cell. */
  decoded(logits, particle) {
    const { cells, vocabulary } = this.model;
    return Uint8Array.from({ length: cells }, (_, cell) => {
      const at = (particle * cells + cell) * vocabulary;
      let best = 0;
      for (let token = 1; token < vocabulary; token++) if (logits[at + token] > logits[at + best]) best = token;
      return best;
    });
  }

  /** New weights: w exp(beta q), 0 where the state is not finite. */
  weigh(before, context, step) {
    const { potential, guide, beta } = this.search;
    const asked = potential.asks(step, this.steps);
    const score = asked ? guide(context) : before.score;
    const alive = score.map((value, k) => (!asked || Number.isFinite(value)) && this.isFinite(context.state, k));
    const tilted = before.logWeights.map((weight, k) => {
      if (!alive[k]) return -Infinity;
      const change = potential.difference ? score[k] - before.score[k] : score[k];
      return asked ? fround(weight + fround(beta * change)) : weight;
    });
    return { logWeights: normalise(tilted), score: score.map((value, k) => (alive[k] ? value : -Infinity)) };
  }

  isFinite({ answer, latent }, particle) {
    const { size } = this;
    let sum = 0;
    for (let i = particle * size; i < (particle + 1) * size; i++) sum += answer[i] + latent[i];
    return Number.isFinite(sum);
  }

  take(half, ancestors) {
    if (ancestors.every((from, slot) => from === slot)) return half;
    const { size } = this;
    const taken = new Float32Array(half.length);
    ancestors.forEach((from, slot) => taken.set(half.subarray(from * size, (from + 1) * size), slot * size));
    return taken;
  }

  /** The result where a rule decides or the last step is done, else null. */
  finished(info, number) {
    for (const [name, rule] of Object.entries(this.search.rules)) {
      const decision = rule(info, this.tokens);
      if (decision.decided) return this.report(info, name, this.vouched(info, decision));
    }
    const last = info.step === this.steps;
    const hopeless = Object.keys(this.search.rules).length > 0 && isDead(info.logWeights) && !this.freshAfter(number);
    if (!last && !hopeless) return null;
    if (info.bank) return this.report(info, "budget", this.bestVisited(info));
    return this.report(info, "budget", this.search.fixed ? this.concluded(info) : this.voted(info));
  }

  freshAfter(number) {
    const { stages, search: { plan } } = this;
    return stages.slice(number + 1).some((stage, k) =>
      plan.symmetric_views || stage.particles > (stage.continues ? stages[number + k].particles : 1));
  }

  report(info, decidedBy, columns) {
    const dead = columns.dead;
    return {
      answer: dead ? new Uint8Array(this.tokens.length) : columns.answer,
      confidence: dead ? 0 : this.stated(info, decidedBy, columns),
      cellConfidence: columns.marginal.map((row, cell) => (dead ? 0 : row[columns.answer[cell]])),
      entropy: columns.marginal.map((row) => (dead ? 1 : entropy(row))),
      haltProbability: dead ? 0 : columns.halt,
      degenerate: dead, decidedBy, evaluations: this.evaluations,
      outerSteps: info.step, particles: info.particles.length,
    };
  }

  stated(info, decidedBy, { answer, confidence, halt }) {
    const valid = this.task.isSolved(this.tokens, answer);
    return statedConfidence(this.search, { decidedBy, confidence, halt, outerSteps: info.step, valid });
  }

  /** Where a rule vouches for a particle: its own probabilities, mixed with its answer by the rule's. */
  vouched(info, { particle, probability, fromBank }) {
    const { answer, halt } = fromBank ? info.bank : { answer: info.answers[particle], halt: info.halt[particle] };
    const certain = fround(probability);
    const marginal = this.softmax(info.logits, particle);
    marginal.forEach((row, cell) => {
      row.forEach((share, token) => (row[token] = share * (1 - certain)));
      row[answer[cell]] += certain;
    });
    return { answer, confidence: certain, marginal, halt: Math.exp(logSigmoid(halt)), dead: isDead(info.logWeights) };
  }

  /** The token probabilities of one particle, its view undone: (cell)(token). */
  softmax(logits, particle) {
    const own = probabilities(logits, particle, this.model);
    if (!this.views) return own;
    const { source, names } = this.view[particle];
    const back = own.map(() => null);
    source.forEach((from, cell) => (back[from] = names.map((name) => own[cell][name])));
    return back;
  }

  /** The weighted vote of an adaptive search that nothing decided. */
  voted(info) {
    const particle = SELECTORS.map(info);
    const answer = info.answers[particle];
    const weights = info.logWeights.map(Math.exp);
    const confidence = info.answers.reduce((sum, other, k) => sum + (sameTokens(other, answer) ? weights[k] : 0), 0);
    return {
      answer, confidence, marginal: marginals(info.answers, weights, this.model),
      halt: Math.exp(logSigmoid(info.halt[particle])), dead: isDead(info.logWeights),
    };
  }

  /** The best of all visited answers, with the halt probability of that visit. */
  bestVisited({ bank, answers, logWeights }) {
    const halt = Math.exp(logSigmoid(bank.halt));
    const marginal = marginals(answers, logWeights.map(Math.exp), this.model);
    return { answer: bank.answer, confidence: halt, marginal, halt, dead: bank.value === -Infinity };
  }

  /** Line 20 for a fixed method: the cloud after its last resampling. */
  concluded(info) {
    const { select, beta, particles } = this.search.fixed;
    const final = { answers: this.cloud.answers, logWeights: this.cloud.logWeights, score: this.cloud.score };
    const pick = SELECTORS[select === "map" && beta === 0 ? "unguided" : select](final);
    const answer = final.answers[pick];
    const weights = final.logWeights.map(Math.exp);
    const same = final.answers.map((other) => sameTokens(other, answer));
    const living = final.logWeights.map((value) => value > -Infinity);
    const halt = Math.exp(logSigmoid(info.halt[info.ancestors[pick]]));
    let confidence = halt;
    if (particles > 1 && select === "map") confidence = Math.min(weights.reduce((sum, weight, k) => sum + (same[k] ? weight : 0), 0), 1);
    else if (particles > 1 && select === "majority") {
      confidence = same.filter((agrees, k) => agrees && living[k]).length / Math.max(living.filter(Boolean).length, 1);
    }
    return { answer, confidence, marginal: marginals(final.answers, weights, this.model), halt, dead: isDead(final.logWeights) };
  }
}
