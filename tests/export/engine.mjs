// Runs searches of the page's engine in Node: reads a job on standard input, writes results on standard output.
// The network is a token-mixing TRM in plain JavaScript, so that nothing but Node is needed.

import { readFileSync } from "node:fs";

const job = JSON.parse(readFileSync(0, "utf-8"));
const engine = (name) => import(`${job.engine}/${name}.js`);
const { Search } = await engine("search");
const { buildSearch, baselineSearch } = await engine("plan");
const { taskOf } = await engine("tasks");
const { readViews } = await engine("views");
const { FrameBuilder, startEvent, resultEvent } = await engine("frames");
const keys = await engine("keys");
const { RESAMPLERS } = await engine("weights");

const product = (weight, columns, vector) => { // (rows, columns) x (columns,)
  const out = new Float64Array(weight.length / columns);
  for (let row = 0; row < out.length; row++) for (let k = 0; k < columns; k++) out[row] += weight[row * columns + k] * vector[k];
  return out;
};

function swiglu({ gate_up: gateUp, down }, vector) {
  const both = product(gateUp, vector.length, vector), half = both.length / 2;
  const hidden = Float64Array.from({ length: half }, (_, k) => (both[k] / (1 + Math.exp(-both[k]))) * both[half + k]);
  return product(down, half, hidden);
}

function normed(vector, change, eps) {
  const sum = vector.map((value, k) => value + change[k]);
  const rms = Math.sqrt(sum.reduce((total, value) => total + value * value, 0) / sum.length + eps);
  return sum.map((value) => value / rms);
}

class PlainModel {
  constructor(known, weights) {
    Object.assign(this, known, { weights });
  }

  async embed(puzzles) {
    const { width, positions, cells, weights } = this;
    const out = new Float32Array(puzzles.length * positions * width);
    puzzles.forEach((tokens, row) => {
      const at = row * positions * width, prefix = positions - cells;
      for (let k = 0; k < prefix * width; k++) out[at + k] = Math.sqrt(width) * weights.prefix[k];
      tokens.forEach((token, cell) => {
        for (let k = 0; k < width; k++) out[at + (prefix + cell) * width + k] = Math.sqrt(width) * weights.embedding[token * width + k];
      });
    });
    return out;
  }

  network(x) {
    const { width, positions, weights: { layers, eps } } = this;
    for (const layer of layers) {
      for (let column = 0; column < width; column++) {
        const vector = Float64Array.from({ length: positions }, (_, p) => x[p * width + column]);
        normed(vector, swiglu(layer.tokens, vector), eps).forEach((value, p) => (x[p * width + column] = value));
      }
      for (let p = 0; p < positions; p++) {
        const vector = x.slice(p * width, (p + 1) * width);
        x.set(normed(vector, swiglu(layer.channels, vector), eps), p * width);
      }
    }
    return x;
  }

  async step({ inputs, first, count, answer, latent, noise }) {
    const { width, positions, cells, vocabulary, inner_steps: inner, weights } = this;
    const size = positions * width;
    if (count > (job.most_rows ?? Infinity)) throw new Error("std::bad_alloc");
    const out = { answer: new Float32Array(count * size), latent: new Float32Array(count * size), logits: new Float32Array(count * cells * vocabulary), halt: [] };
    for (let row = 0; row < count; row++) {
      const x = inputs.length === size ? inputs : inputs.subarray((first + row) * size, (first + row + 1) * size);
      const y = answer.slice(row * size, (row + 1) * size);
      let z = latent.slice(row * size, (row + 1) * size);
      const drawn = (site) => noise.subarray((row * (inner + 1) + site) * size, (row * (inner + 1) + site + 1) * size);
      for (let m = 0; m < inner; m++) {
        const own = drawn(m);
        z = Float32Array.from(this.network(Float64Array.from(z, (value, k) => value + y[k] + x[k])), (value, k) => value + own[k]);
      }
      const own = drawn(inner);
      const next = Float32Array.from(this.network(Float64Array.from(y, (value, k) => value + z[k])), (value, k) => value + own[k]);
      out.answer.set(next, row * size);
      out.latent.set(z, row * size);
      for (let cell = 0; cell < cells; cell++) {
        const at = (positions - cells + cell) * width;
        out.logits.set(product(weights.token_head, width, next.subarray(at, at + width)), (row * cells + cell) * vocabulary);
      }
      out.halt.push(Math.fround(product(weights.halt_head, width, next.subarray(0, width))[0] + weights.halt_bias));
    }
    return out;
  }
}

async function solved(known, { puzzle, method, seed, weights, ...settings }) {
  const task = taskOf(known);
  const tokens = task.encode(puzzle);
  const built = method === "baseline" ? baselineSearch(known, task) : buildSearch(known, task, { method, ...settings });
  const search = new Search(new PlainModel(known, job.weights), built, task, tokens, seed, readViews(known));
  if (job.block) search.block = job.block;
  const frames = new FrameBuilder(built.plan, task.cells(tokens)), steps = [];
  for await (const info of search.run()) {
    steps.push(frames.frame(info, search.model));
    if (info.result) {
      return { start: startEvent(known, task, tokens, { method, seed, ...settings }), steps, result: resultEvent(task, tokens, info.result, 0) };
    }
  }
}

const out = {};
if (job.known) {
  out.runs = [];
  for (const run of job.runs) out.runs.push(await solved(job.known, run));
}
if (job.draws) {
  const { count, key } = job.draws, normals = new Float32Array(count);
  keys.fillNormals(normals, 0, BigInt.asUintN(64, BigInt(key)), 1, keys.counters(count / 2));
  out.normals = [...normals];
  out.uniforms = keys.uniforms(BigInt.asUintN(64, BigInt(key)), 5);
  out.derived = String(BigInt.asIntN(64, keys.derive(BigInt.asUintN(64, BigInt(key)), 3, -7, 2 ** 40)));
}
if (job.ancestors) {
  out.ancestors = job.ancestors.map(({ resampler, weights, key }) => RESAMPLERS[resampler](weights, BigInt.asUintN(64, BigInt(key))));
}
if (job.guesses) {
  const { fillIn } = await engine("guesses");
  const { clues } = taskOf(job.guessed_task);
  out.guesses = job.guesses.map(({ tokens, votes, key, particles, count }) =>
    fillIn(Uint8Array.from(tokens), votes, BigInt.asUintN(64, BigInt(key)), particles, count, clues).map((row) => [...row]));
}
if (job.said) {
  const { clues } = taskOf({ task: "pencil" });
  out.said = job.said.map(({ tokens, answers }) =>
    answers.map((answer) => [...clues.inAnswer(Uint8Array.from(tokens), Uint8Array.from(answer))]));
}
if (job.votes) {
  const { addVotes } = await engine("guesses");
  const { clouds, vocabulary } = job.votes;
  let votes = null;
  out.votes = clouds.map(({ said, alive }) => (votes = addVotes(votes, said, alive, vocabulary)));
}
if (job.settings) out.settings = job.settings.map((own) => buildSearch(job.settings_of, taskOf(job.settings_of), own).settings);
if (job.judged) {
  out.judged = job.judged.map(({ task, side, puzzle, answer }) => {
    const rules = taskOf({ task, side, symbols: [] });
    return [rules.violations(puzzle, answer), rules.isSolved(puzzle, answer), rules.given(puzzle)];
  });
}
if (job.paths) { // the bank after every step, and what the stopping rule makes of it
  const { banked, byPath, byShortest } = await engine("bank");
  const { task: name, side, puzzle, share, least, steps } = job.paths;
  const task = taskOf({ task: name, side, symbols: [] }), values = byPath(task), rule = byShortest(share, least);
  let bank = null;
  out.paths = steps.map(({ answers, unchanged, halt }) => {
    const info = { puzzle, answers, unchanged, halt, logWeights: halt.map(() => 0) };
    bank = banked(bank, info, values(info));
    const { decided, fromBank } = rule({ ...info, bank });
    return [decided, fromBank, [...bank.answer], bank.halt];
  });
}
if (job.stated) {
  const { statedConfidence } = await engine("confidence");
  out.stated = job.stated.map(({ known, settings, stop }) => statedConfidence(buildSearch(known, taskOf(known), settings), stop));
}
if (job.addresses) {
  out.addresses = job.addresses.map((address) => {
    const task = taskOf({ task: "pencil" });
    try {
      const tokens = task.encode(address);
      return { tokens: [...tokens], address: task.address(tokens), type: task.type(tokens), columns: task.columns(tokens) };
    } catch (error) {
      return { error: error.message };
    }
  });
}
process.stdout.write(JSON.stringify(out));
