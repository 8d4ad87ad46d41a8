"""Will exploration help, and which answers to trust? Section 5 of the paper as software."""

from tiltrm.diagnose.entropy import Uncertainty
from tiltrm.diagnose.report import Report
from tiltrm.diagnose.run import SMALL, diagnose
from tiltrm.diagnose.selective import abstain_top, calibrate, keep_up_to
from tiltrm.diagnose.stability import Stability
from tiltrm.diagnose.study import Study
from tiltrm.diagnose.verdict import FLAT, HELP, UNSTABLE, VERDICTS

__all__ = [
    "FLAT",
    "HELP",
    "SMALL",
    "UNSTABLE",
    "VERDICTS",
    "Report",
    "Stability",
    "Study",
    "Uncertainty",
    "abstain_top",
    "calibrate",
    "diagnose",
    "keep_up_to",
]
