"""Help texts of flags that several commands have."""

TASKS = "sudoku, maze, sudoku4, or one's own as FILE.py:NAME"

RAY = (
    "spread the work over a Ray cluster: HOST:PORT, auto for the one here, local for a new one "
    "(RAY_ADDRESS, else local)"
)
