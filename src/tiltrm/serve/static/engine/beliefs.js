// What a cloud believes of every cell: probabilities of one particle, votes of all, and their entropy.

/** The token probabilities of one particle, as it sees the puzzle: (cell)(token). */
export function probabilities(logits, particle, { cells, vocabulary }) {
  return Array.from({ length: cells }, (_, cell) => {
    const row = [...logits.subarray((particle * cells + cell) * vocabulary, (particle * cells + cell + 1) * vocabulary)];
    const most = Math.max(...row);
    const powers = row.map((value) => Math.exp(value - most));
    const total = powers.reduce((sum, value) => sum + value, 0);
    return powers.map((value) => (Number.isFinite(value / total) ? value / total : 0));
  });
}

/** The votes of a cloud: (cell)(token). */
export function marginals(answers, weights, { cells, vocabulary }) {
  const table = Array.from({ length: cells }, () => Array(vocabulary).fill(0));
  answers.forEach((answer, k) => answer.forEach((token, cell) => (table[cell][token] += weights[k])));
  return table;
}

/** Shannon entropy over log C, in [0, 1]. */
export function entropy(row) {
  const sum = row.reduce((total, share) => total - (share > 0 ? share * Math.log(share) : 0), 0);
  return Math.min(Math.max(sum / Math.log(Math.max(row.length, 2)), 0), 1);
}
