"""What can be reproduced, in the order of the page. A file of its own, since it loads nothing."""

ALL = "all"
NAMES = ("frontier", "table1", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8")
