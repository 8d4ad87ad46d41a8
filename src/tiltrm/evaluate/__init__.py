"""Every method on the same puzzles: jobs, their shards in a store, and the tables made of them.

subject = examine("sudoku-extreme", "test.csv.gz", "Test")
todo = plans.table1(subject, "quick")
store = Store("results")
run(todo, store, tiltrm.device.choose("auto"))
rows = summarise(store.read(todo))
"""

from tiltrm.evaluate import plans
from tiltrm.evaluate.job import Job
from tiltrm.evaluate.paired import Paired, paired
from tiltrm.evaluate.peers import METHODS
from tiltrm.evaluate.run import do, run
from tiltrm.evaluate.shards import Shard
from tiltrm.evaluate.store import Store
from tiltrm.evaluate.subject import Subject, examine
from tiltrm.evaluate.summary import Curve, Row, by_step, summarise

__all__ = [
    "METHODS",
    "Curve",
    "Job",
    "Paired",
    "Row",
    "Shard",
    "Store",
    "Subject",
    "by_step",
    "do",
    "examine",
    "paired",
    "plans",
    "run",
    "summarise",
]
