"""ARC: the tasks mini-arc (grids of 5 x 5) and arc (grids of at most 30 x 30)."""

from tiltrm.tasks.arc.full import ARC, Arc
from tiltrm.tasks.arc.mini import MINI_ARC, MiniArc

__all__ = ["ARC", "MINI_ARC", "Arc", "MiniArc"]
