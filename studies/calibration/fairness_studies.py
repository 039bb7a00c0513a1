"""Calibration with the history, diversity, fairness to items, and inequality of groups."""

from __future__ import annotations

from typing import Any, get_args

from list_studies import (
    MODEL,
    RECOMMENDED,
    SAMPLES,
    UNBIASED,
    average_samples,
    make_pair_sampler,
    make_study,
    measure_everybody,
)
from tally import Measurements, Study, World

from recbias.core.evidence import Evidence
from recbias.core.grouping import group_by
from recbias.metrics import popularity as corrected
from recbias.metrics.accuracy import NDCG
from recbias.metrics.calibration import CalibrationJS, CalibrationKL
from recbias.metrics.diversity import (
    InterUserDistance,
    IntraListDistance,
    SelfInformation,
    Serendipity,
    Unexpectedness,
)
from recbias.metrics.popularity import FSat, IndividualExposure, Jain, OverallExposure
from recbias.statistics.inequality import GroupInequality, InequalityKind

OF_USERS = (
    make_study(CalibrationKL(attribute="genres"), "calibration_kl"),
    make_study(CalibrationJS(attribute="genres"), "calibration_js"),
    make_study(IntraListDistance(attribute="genres"), "intra_list_distance"),
    make_study(SelfInformation(), "self_information, popularity counted"),
    make_study(Unexpectedness(), "unexpectedness, popularity counted"),
    make_study(Serendipity(), "serendipity, popularity counted"),
    make_study(IndividualExposure(), "II-F"),
)
OF_SAMPLE = (
    make_study(InterUserDistance(), "inter_user_distance"),
    make_study(Jain(), "Jain"),
    make_study(FSat(), "FSat"),
    make_study(corrected.CorrectedJain(), "corrected_Jain"),
    make_study(corrected.CorrectedQF(), "corrected_QF"),
    make_study(corrected.CorrectedEntropy(), "corrected_Entropy"),
    make_study(corrected.CorrectedGini(), "corrected_Gini"),
    make_study(corrected.CorrectedFSat(), "corrected_FSat"),
    make_study(OverallExposure(), "AI-F"),
)


def make_inequality_study(kind: Any, by: str) -> Study:
    """The inequality of nDCG between or within groups."""

    def measure(evidence: Evidence) -> Measurements:
        (ndcg,) = NDCG().measure(evidence)
        index = GroupInequality(kind=kind, direction="higher", n_samples=evidence.n_bootstrap)
        return [index.measure(ndcg, group_by(evidence.queries.labels, by), evidence.rng())]

    return Study(f"nDCG: {kind} by {by}", measure)


INEQUALITY = tuple(
    make_inequality_study(kind, by)
    for by in ("gender", "gender & age < 25")
    for kind in get_args(InequalityKind)
    if kind not in {"mad", "worst", "worst_quarter"}  # they have no interval
)
BETWEEN = tuple(
    study for study in INEQUALITY if "within" not in study.name and "total" not in study.name
)

WORLDS = (
    World(
        "calibration, diversity and fairness of lists",
        f"the value of {100_000:,} other users",
        (*OF_USERS, *INEQUALITY),
        RECOMMENDED.sample,
        measure_everybody,
        make_pair_sampler(UNBIASED),
        plants=MODEL,
    ),
    World(
        "diversity and fairness of lists, values of a sample",
        f"the mean of {SAMPLES} other samples",
        OF_SAMPLE,
        RECOMMENDED.sample,
        average_samples,
        make_pair_sampler(UNBIASED),
        plants=MODEL,
    ),
    World(
        "inequality of groups, no effect",
        "0",
        BETWEEN,
        UNBIASED.sample,
        lambda _study, _seed: {"": 0.0},
        plants="nothing: the model treats women and men alike",
    ),
)
