"""Training: deep supervision with a halting carry, resumable, for some minutes or some steps.

`Trainer` runs the whole training; `Learner` takes one step. The folder of a run holds
`metrics.jsonl` (a JSON line every few steps and for every evaluation), `scan.jsonl`, `best/` (the
averaged weights with the best validation accuracy, and a card) and `state/` (the point from which
`--resume` goes on). A resumed run drops the log lines that are newer than its saved state.

To train on generated mazes, use `--preset fresh`. To train on other generated puzzles, write them
with `tiltrm data --generate N --out FILE` and run `tiltrm train --data FILE`; augment "endless"
shows each puzzle under a new symmetry every time. Report such results apart from results that are
trained on the 1,000 public puzzles.
"""
