"""Tables, figures and pages of `tiltrm reproduce` and `tiltrm diagnose`, drawn from stored results.

An item of the reproduction is one module, `table1`, `frontier` or `fig1_steps` to `fig8_training`,
with a function `section(results)` that returns a `Section`: panels, numbers and sentences. `items`
lists them. `results` reads the store, `drawing` turns panels into pictures, `page` writes the HTML.
Only `results.find_targets` loads a model, to take its fingerprint.
"""

ALL = "all"
ITEM_NAMES = (
    "frontier", "table1", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8",
)  # fmt: skip
"""In the order of the page. They stand here because the command line needs them at start-up."""
