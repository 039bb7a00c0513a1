from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MissingFile
from recbias.core.evidence import Evidence, Responses
from recbias.formats.ratings import ResponseRatings, digest_response, write_ratings
from recbias.metrics.text import HumanAgreement, HumanRate, HumanScore
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary, measure_one

TEXTS = ("a", "b", "c", "d")
# mean ratings 5/3, 1/2, 2, none; of the scores 2: 2/3, 0, 1
RATINGS = np.array([[2, 0, 2, np.nan], [2, 1, np.nan, np.nan], [1, np.nan, np.nan, np.nan]])


def write(path: Path, ratings: Any = RATINGS) -> Path:
    ids = np.array([f"q{row}" for row in range(4)], dtype=object)
    digests = np.array([digest_response(text) for text in TEXTS], dtype=object)
    table = ResponseRatings(ids, digests, (("m",),) * 4, ("x", "y", "z"), np.array(ratings))
    return write_ratings(path / "ratings.jsonl", table, "quality")


def make_evidence(texts: tuple[str, ...] = TEXTS) -> Evidence:
    ids = np.array([f"q{row}" for row in range(len(texts))], dtype=object)
    none = np.full(len(texts), None, dtype=object)
    responses = Responses(ids, np.array(texts, dtype=object), none)
    queries, items = make_user_queries(0), make_vocabulary("i", 0)
    return Evidence(queries, items, responses=responses, metric="it", n_bootstrap=50)


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        (HumanRate, {"score": 2.0}, (2 / 3 + 0 + 1) / 3),
        (HumanRate, {"score": 1.0}, (1 / 3 + 1 / 2 + 0) / 3),
        (HumanRate, {"score": 0.0}, (0 + 1 / 2 + 0) / 3),
        (HumanScore, {}, (5 / 3 + 1 / 2 + 2) / 3),
    ],
)
def test_values_equal_those_worked_by_hand(
    kind: Any, settings: dict[str, float], expected: float, tmp_path: Path
) -> None:
    with collect_warnings() as notes:
        measurement = measure_one(kind(ratings=write(tmp_path), **settings), make_evidence())
    assert measurement.value == pytest.approx(expected)
    assert (measurement.n, measurement.undefined) == (3, 1)
    assert notes == ["it: 1 of 4 responses have no rating"]


def test_agreement_by_hand(tmp_path: Path) -> None:
    # pairs within: a has 2-1 twice of three, over 2; b has 0-1. n = 5 ratings 2 2 1 0 1:
    # D_o = (4/2 + 2/1) / 5 = 0.8; of 20 ordered pairs 4 are equal: D_e = 0.8
    with collect_warnings():
        measurement = measure_one(HumanAgreement(ratings=write(tmp_path)), make_evidence())
    assert measurement.value == pytest.approx(0.0)
    assert (measurement.n, measurement.undefined) == (2, 2)


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize("kind", [HumanRate, HumanScore, HumanAgreement])
def test_changed_responses_have_no_ratings(kind: Any, tmp_path: Path) -> None:
    changed = make_evidence(tuple(text + "!" for text in TEXTS))
    for evidence, n in ((changed, 4), (make_evidence(()), 0)):
        measurement = measure_one(kind(ratings=write(tmp_path / str(n))), evidence)
        assert math.isnan(measurement.value)
        assert (measurement.n, measurement.undefined) == (0, n)


@pytest.mark.usefixtures("stage_warnings")
def test_models_are_paired_by_response(tmp_path: Path) -> None:
    metric = HumanRate(ratings=write(tmp_path), score=2.0)
    a, b = (measure_one(metric, make_evidence(texts)) for texts in (TEXTS, ("a", "b", "x", "d")))
    assert a.units.ids.tolist() == b.units.ids.tolist()
    assert a.units.values[:2].tolist() == b.units.values[:2].tolist()
    assert math.isnan(b.units.values[2])
    alpha = HumanAgreement(ratings=write(tmp_path / "alpha"))
    replicates = [measure_one(alpha, make_evidence()).replicates for _ in range(2)]
    assert replicates[0] is not None
    assert replicates[1] is not None
    assert np.array_equal(replicates[0], replicates[1], equal_nan=True)
    assert np.nanstd(replicates[0]) > 0


def test_an_absent_file_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(MissingFile):
        HumanRate(ratings=tmp_path / "absent.jsonl").check(make_evidence())
