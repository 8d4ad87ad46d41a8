"""Formulas in conjunctive normal form for OR-Tools' CP-SAT.

A literal is the number of a variable, or ~number where it must be false.
"""

import importlib.util
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from tiltrm.errors import SettingsError


class UndecidedError(Exception):
    """The search took too many rounds to say whether there is a solution."""


def have_ortools() -> bool:
    """Whether OR-Tools is installed."""
    return importlib.util.find_spec("ortools") is not None


def cp_model() -> Any:
    """OR-Tools' module, or a SettingsError that says how to install it."""
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise SettingsError(
            "expected OR-Tools for generating and counting solutions, got none; install it with "
            "pip install 'tiltrm[generate]'"
        ) from error
    return cp_model


class Clauses:
    """A formula in conjunctive normal form over numbered variables, solved by CP-SAT."""

    def __init__(self, variables: int, seed: int) -> None:
        module = cp_model()
        self._model = module.CpModel()
        self._solver = module.CpSolver()
        settings = self._solver.parameters
        settings.num_workers = 1
        settings.random_seed = seed % 2**31
        settings.cp_model_presolve = False  # the formulas are small: presolve takes longer
        settings.cp_model_probing_level = 0
        settings.use_sat_inprocessing = False
        settings.linearization_level = 0
        settings.symmetry_level = 0
        settings.max_deterministic_time = 10.0
        self._infeasible, self._unknown = module.INFEASIBLE, module.UNKNOWN
        self._count = 0
        for _ in range(variables):
            self.fresh()

    def fresh(self) -> int:
        """A further variable."""
        self._model.new_bool_var("")
        self._count += 1
        return self._count - 1

    def add(self, *literals: int) -> None:
        """One of the literals holds."""
        self._model.proto.constraints.add().bool_or.literals.extend(literals)

    def add_at_most_one(self, literals: Iterable[int]) -> None:
        """No two of the literals hold."""
        self._model.proto.constraints.add().at_most_one.literals.extend(list(literals))

    def fix(self, variable: int, value: bool) -> None:
        """Decide a variable, until it is decided otherwise."""
        domain = self._model.proto.variables[variable].domain
        domain[0] = domain[1] = int(value)

    def free(self, variable: int) -> None:
        """Leave a variable open again."""
        domain = self._model.proto.variables[variable].domain
        domain[0], domain[1] = 0, 1

    def add_count(self, cells: Sequence[int], count: int, *unless: int) -> None:
        """Exactly so many of the cells are marked, unless one of the other literals holds."""
        if not 0 <= count <= len(cells):
            self.add(*unless)
            return
        for chosen in combinations(cells, count + 1):
            self.add(*unless, *(~cell for cell in chosen))
        for chosen in combinations(cells, len(cells) - count + 1):
            self.add(*unless, *chosen)

    def add_long_count(self, cells: Sequence[int], count: int, *unless: int) -> None:
        """The same for many cells, with further variables that count."""
        reached = self._counter(cells, count + 1)
        self.add(*unless, reached[count])
        self.add(*unless, ~reached[count + 1])

    def _counter(self, cells: Sequence[int], most: int) -> dict[int, int]:
        """Variables that say whether at least 1 .. most of the cells are marked."""
        always, never = self.fresh(), self.fresh()
        self.add(always)
        self.add(~never)
        before = {0: always} | dict.fromkeys(range(1, most + 1), never)
        for cell in cells:
            after = {0: always}
            for number in range(1, most + 1):
                one, here = self.fresh(), before[number]
                self.add(~here, one)
                self.add(~cell, ~before[number - 1], one)
                self.add(~one, here, cell)
                self.add(~one, here, before[number - 1])
                after[number] = one
            before = after
        return before

    def solve(self) -> list[bool] | None:
        """Values of all variables, or None where no assignment satisfies the clauses."""
        status = self._solver.solve(self._model)
        if status == self._unknown:
            raise UndecidedError
        if status == self._infeasible:
            return None
        return [value != 0 for value in self._solver.response_proto.solution]
