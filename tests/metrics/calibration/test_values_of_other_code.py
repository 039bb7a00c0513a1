"""Calibration equals what other implementations compute, run outside the project.

- Kullback-Leibler: ``compute_genre_distr`` and ``compute_kl_divergence`` of the notebook
  recsys/calibration/calibrated_reco.ipynb of ethen8181/machine-learning, commit 9db3ae5, times
  ln 2, as its logarithm has base 2. All shares are multiples of 0.001, to which it rounds.
- Jensen-Shannon: ``compute_distr`` and ``compute_kl_divergence`` of svrijenhoek/RADio, commit
  c6b81d6, the code of the paper: the square of its root, without smoothing (alpha 0), and with the
  discount of ranks for the list only.
"""

from __future__ import annotations

from recbias.metrics.calibration import CalibrationJS, CalibrationKL
from support.seeded_cases.cases import SeededCase
from support.seeded_cases.evidence import assert_equal_to_other_code, make_case_evidence
from support.worlds.exposure_worlds import measure_one


def test_kullback_leibler_divergence_of_lists_from_histories() -> None:
    def compute(case: SeededCase) -> float:
        evidence = make_case_evidence(case, case.lists, histories=case.profiles)
        return measure_one(CalibrationKL(attribute="genre"), evidence).value

    assert_equal_to_other_code("calibration_kl", compute)


def test_rank_aware_jensen_shannon_divergence_of_lists_of_several_lengths() -> None:
    def compute(case: SeededCase) -> float:
        evidence = make_case_evidence(case, case.short_lists, histories=case.profiles)
        return measure_one(CalibrationJS(attribute="maker"), evidence).value

    assert_equal_to_other_code("calibration_js", compute)
