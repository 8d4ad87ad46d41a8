"""Diagnostics of Section 5 of the paper: will exploration help, and which answers to trust?"""

from tiltrm.diagnose.alignment import Alignment
from tiltrm.diagnose.diagnosis import NOISES, ROOTED, SMALL, diagnose
from tiltrm.diagnose.entropy import Uncertainty
from tiltrm.diagnose.report import DiagnosisReport
from tiltrm.diagnose.selective import abstain_top, calibrate, keep_up_to
from tiltrm.diagnose.stability import Stability
from tiltrm.diagnose.verdict import FLAT, HELP, NOTHING, UNSTABLE, VERDICTS

__all__ = [
    "FLAT",
    "HELP",
    "NOISES",
    "NOTHING",
    "ROOTED",
    "SMALL",
    "UNSTABLE",
    "VERDICTS",
    "Alignment",
    "DiagnosisReport",
    "Stability",
    "Uncertainty",
    "abstain_top",
    "calibrate",
    "diagnose",
    "keep_up_to",
]
