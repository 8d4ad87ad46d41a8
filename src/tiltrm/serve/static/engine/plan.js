// What a run does, from the settings of the page and the defaults that `tiltrm site` wrote down:
// tiltrm/solving/methods.py and plans.py.

import { byPath, byShortest } from "./bank.js";
import { searchSettings } from "./confidence.js";
import { parseGuide } from "./guides.js";
import { byAgreement, byHalting, byRules } from "./select.js";

const ANSWER = 0, START_LATENT = 1, START_ANSWER = 2, INNER = 3; // sites of an outer step, as in explore/noise.py
export const SITES = { ANSWER, START_LATENT, START_ANSWER, INNER };

const PLACEMENTS = {
  everywhere: ({ site }) => Number(site === ANSWER || site >= INNER),
  latent: ({ site }) => Number(site >= INNER),
  answer: ({ site }) => Number(site === ANSWER),
};

export const outerSteps = (stages) => stages.reduce((sum, stage) => sum + stage.outer_steps, 0);

/** The plan with these settings; see `resized_plan` in Python. */
export function resizedPlan(plan, unknown, { particles, outer_steps: steps, noise, beta, resample_below: below }) {
  if (plan.symmetric_views && below) plan = unknown;
  let stages = plan.stages;
  if (noise !== undefined) {
    stages = stages.map((stage) => ({ ...stage, noise: null }));
    plan = { ...plan, noise };
  }
  if (particles !== undefined) stages = noLarger(stages, particles);
  if (steps !== undefined) stages = lasting(stages, steps);
  stages = [{ ...stages[0], guesses: 0 }, ...stages.slice(1)]; // where the first one was left out
  return { ...plan, stages, beta: beta ?? plan.beta, resample_below: below ?? plan.resample_below };
}

function noLarger(stages, most) {
  const kept = stages.filter((stage) => stage.particles <= most);
  if (kept.at(-1)?.particles === most) return kept;
  const following = stages[Math.min(kept.length, stages.length - 1)];
  return [...kept, { ...following, particles: most, continues: false }];
}

function lasting(stages, steps) {
  const cut = [];
  let left = steps;
  for (const stage of stages) {
    if (left <= 0) break;
    cut.push({ ...stage, outer_steps: Math.min(stage.outer_steps, left) });
    left -= cut.at(-1).outer_steps;
  }
  const last = cut.at(-1);
  return [...cut.slice(0, -1), { ...last, outer_steps: last.outer_steps + left }];
}

/** The noise of an adaptive plan: each stage its own, none for particle 0 (with views: in the first stage). */
function plannedNoise(plan) {
  const byStep = plan.stages.flatMap((stage, number) => {
    const quiet = stage.particles === 1 && (number === 0 || !plan.symmetric_views);
    return Array(stage.outer_steps).fill(quiet ? 0 : stage.noise ?? plan.noise);
  });
  const until = plan.symmetric_views ? plan.stages[0].outer_steps : Infinity;
  return (where) => {
    if (where.particle === 0 && where.step <= until) return 0;
    return PLACEMENTS.everywhere(where) * byStep[Math.min(where.step, byStep.length) - 1];
  };
}

/** Noise of a fixed method: its scale at its places. */
function fixedNoise({ noise, placement }, cycles) {
  if (placement !== "supervision") return (where) => noise * PLACEMENTS[placement](where);
  return ({ site, step }) => (site === START_LATENT && (step - 1) % cycles === 0 ? noise : 0);
}

/** When the guide is asked, and the tilt of its scores. */
function potentialOf({ potential, score_every: every }) {
  const asks = potential === "terminal" ? (step, steps) => step === steps : (step, steps) => step % every === 0 || step === steps;
  return { asks, difference: potential === "difference" };
}

/**
 * The search of a method: {plan, noise(where), guide, beta, potential, resampling, rules, fixed, visited}.
 * `known` is the model's description, `task` its rules; throws an Error of one sentence.
 */
export function buildSearch(known, task, { method = "adaptive", ...settings }) {
  const guide = parseGuide(settings.guide ?? "halting", task);
  if (method !== "adaptive") {
    const fixed = { ...known.methods[method] };
    for (const name of Object.keys(fixed)) if (settings[name] !== undefined) fixed[name] = settings[name];
    const stages = [{ particles: fixed.particles, outer_steps: fixed.outer_steps, continues: false, noise: null, guesses: 0 }];
    return {
      plan: { stages, symmetric_views: false }, noise: fixedNoise(fixed, known.cycles), guide, beta: fixed.beta,
      potential: potentialOf(fixed), rules: {}, fixed,
      resampling: { trigger: fixed.trigger, resampler: fixed.resampler, below: fixed.resample_below },
    };
  }
  const plan = resizedPlan(known.plan, known.unknown_plan, settings);
  const stopping = stoppingOf(known, settings);
  const rules = stopping.rules ? { rules: byRules(task.isSolved) } : decidedRules(stopping);
  const visited = stopping.shortest_visited ? byPath(task) : null;
  const described = searchSettings(plan, settings.guide ?? "halting", stopping, known.puzzle_id);
  return { ...adaptive(plan, rules, guide), visited, calibration: known.calibration, settings: described };
}

/** The complete settings of the stopping rules: those given, else those of the model's plan. */
function stoppingOf({ stopping, planned }, { rules, halt_above: above }) {
  if (!rules && above === undefined) return { ...stopping, ...planned };
  return { ...stopping, rules: Boolean(rules), halt_above: above ?? stopping.halt_above, shortest_visited: false };
}

function decidedRules({ halt_above: above, settled, agree_share: share, agree_among: among, shortest_visited: shortest }) {
  if (shortest) return { agreement: byShortest(share, among) };
  return { halting: byHalting(above, settled), agreement: byAgreement(share, among) };
}

function adaptive(plan, rules, guide) {
  return {
    plan, noise: plannedNoise(plan), guide, beta: plan.beta, rules, fixed: null,
    potential: potentialOf({ potential: "every_step", score_every: 1 }),
    resampling: { trigger: "ess", resampler: "systematic", below: plan.resample_below },
  };
}

/** The deterministic run that is shown beside others. */
export const baselineSearch = (known, task) =>
  adaptive({ ...known.unknown_plan, stages: known.baseline }, decidedRules(known.stopping), parseGuide("halting", task));
