"""Evaluation of methods on the same puzzles: jobs, a store of their results, and tables.

target = eval_target("sudoku-extreme", "test.csv.gz", "Test")
jobs = plans.table1(target, "quick")
store = Store("results")
run(jobs, store, tiltrm.device.choose("auto"))
rows = summarise(store.read(jobs))
"""

from tiltrm.evaluate import plans
from tiltrm.evaluate.compare import Paired, paired
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.peers import METHODS
from tiltrm.evaluate.run import do, run
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.summary import Curve, Row, by_step, summarise
from tiltrm.evaluate.target import EvalTarget, eval_target

__all__ = [
    "METHODS",
    "Curve",
    "EvalTarget",
    "Job",
    "Paired",
    "Row",
    "Shard",
    "Store",
    "by_step",
    "do",
    "eval_target",
    "paired",
    "plans",
    "run",
    "summarise",
]
