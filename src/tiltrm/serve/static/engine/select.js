// Which particle answers, and when a search is decided: tiltrm/explore/select.py and stopping.py for one puzzle.

const TIE = 1e-6;
export const logSigmoid = (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x)));
export const sameTokens = (some, other) => some.every((token, cell) => token === other[cell]);

/** The lowest index with the highest value among those marked; 0 where none is. */
export function firstBest(values, among) {
  let best = -1;
  values.forEach((value, k) => {
    if (among[k] && (best < 0 || value > values[best])) best = k;
  });
  return Math.max(best, 0);
}

const alive = ({ logWeights }) => logWeights.map((value) => value > -Infinity);

/** The answer with most of `weights`; ties go to the best score, then to the lower index. */
function heaviest(cloud, weights) {
  const mass = cloud.answers.map((own) =>
    cloud.answers.reduce((sum, other, k) => sum + (sameTokens(own, other) ? weights[k] : 0), 0));
  const most = Math.max(...mass);
  return firstBest(cloud.score, alive(cloud).map((living, k) => living && mass[k] >= most - TIE));
}

export const SELECTORS = {
  map: (cloud) => heaviest(cloud, cloud.logWeights.map(Math.exp)),
  unguided: (cloud) => SELECTORS.map({ ...cloud, score: cloud.score.map(() => 0) }),
  majority: (cloud) => heaviest(cloud, alive(cloud).map(Number)),
  best_score: (cloud) => firstBest(cloud.score, alive(cloud)),
};

/** Decided once the halt logit of a living (and settled) particle exceeds `above`. */
export const byHalting = (above, settled) => (cloud) => {
  const eligible = alive(cloud).map((living, k) => living && (!settled || cloud.settled[k]));
  const particle = firstBest(cloud.halt, eligible);
  const decided = cloud.halt[particle] > above && eligible.includes(true);
  return { decided, particle, probability: Math.exp(logSigmoid(cloud.halt[particle])) };
};

/** Decided once `share` of the living particles agree, in a cloud of at least `least`. */
export const byAgreement = (share, least) => (cloud) => {
  const living = alive(cloud);
  if (living.length < least) return { decided: false, particle: 0, probability: 0 };
  const particle = SELECTORS.majority(cloud);
  const same = cloud.answers.filter((answer, k) => living[k] && sameTokens(answer, cloud.answers[particle])).length;
  const agreed = same / Math.max(living.filter(Boolean).length, 1);
  return { decided: Math.fround(agreed) >= Math.fround(share) && living.includes(true), particle, probability: agreed };
};

/** Decided once a living particle's answer is a solution by the rules. */
export const byRules = (isSolved) => (cloud, puzzle) => {
  const living = alive(cloud);
  const solved = cloud.answers.map((answer, k) => living[k] && isSolved(puzzle, answer));
  return { decided: solved.includes(true), particle: firstBest(cloud.score, solved), probability: Number(solved.includes(true)) };
};
