"""Training: deep supervision with a halting carry, resumable, by the clock or by steps.

`Learner` is what a step changes, `Trainer` decides when to look, scan and save. A run's folder has
`metrics.jsonl` (a JSON line every few steps and for every evaluation), `scan.jsonl`, `best/` (the
average weights, best by validation, with a card) and `state/` (what `--resume` goes on from). Lines
about what a kill has lost since that state are dropped when the run goes on.

Mazes of our own generator: `--preset fresh`. For other puzzles of one's own, `tiltrm data
--generate N --out FILE` writes them and `tiltrm train --data FILE` takes them, each under a fresh
symmetry where augment is "endless".
Results so trained are not results of the 1,000 public puzzles, and are to be reported apart.
"""
