from __future__ import annotations

import numpy as np
import pytest

from recbias.core.errors import MissingEvidence, OutOfRange
from recbias.core.evidence import Evidence
from recbias.metrics import accuracy
from recbias.metrics.accuracy import (
    ClassMRR,
    check_cutoff,
    compute_in_blocks,
    require_predictions,
    validate_cutoff,
)
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary
from support.worlds.texts.review_worlds import make_review_evidence


def test_missing_predictions_are_an_error() -> None:
    bare = Evidence(
        queries=make_user_queries(1), item_ids=make_vocabulary("i", 2), metric="class_MRR"
    )
    with pytest.raises(MissingEvidence, match="class_MRR needs predictions") as caught:
        require_predictions(bare)
    assert "predicts items of reviews" in caught.value.remedy


def test_a_cutoff_larger_than_the_number_of_items_is_refused() -> None:
    validate_cutoff(None, 3)
    validate_cutoff(3, 3)
    with pytest.raises(OutOfRange, match="k is 4, but a model can predict only 3 items") as caught:
        validate_cutoff(4, 3)
    assert (caught.value.where, caught.value.remedy) == ("k", "set k to 3 or less")


def test_a_cutoff_larger_than_the_number_of_candidates_is_refused_before_training() -> None:
    of = Evidence(
        queries=make_user_queries(1),
        item_ids=make_vocabulary("i", 3),
        candidates=np.array([True, True, False]),
    )
    check_cutoff(of, 2)
    with pytest.raises(OutOfRange, match="only 2 items"):
        check_cutoff(of, 3)
    check_cutoff(Evidence(queries=make_user_queries(1), item_ids=make_vocabulary("i", 3)), 9)


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_values_do_not_depend_on_the_block_size(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(accuracy, "block_size", lambda _: size)
    predictions = require_predictions(make_review_evidence([0, 1, 2, 3, 4], [[0, 1]] * 5))
    values = compute_in_blocks(lambda rows: np.arange(5.0)[rows] ** 2, predictions)
    assert values.tolist() == [0, 1, 4, 9, 16]


def test_no_reviews_give_no_values() -> None:
    assert compute_in_blocks(
        lambda _: np.ones(1), require_predictions(make_review_evidence([], np.empty((0, 3))))
    ).shape == (0,)


def test_units_are_reviews() -> None:
    (measurement,) = ClassMRR().measure(make_review_evidence([0, 1, 2], [[0, 1, 2]] * 3))
    assert measurement.units is not None
    assert (measurement.units.unit, measurement.units.ids.tolist()) == (
        "review",
        ["r0", "r1", "r2"],
    )
