from __future__ import annotations

import numpy as np
import pytest

from recbias.core.errors import MissingEvidence, OutOfRange
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.accuracy import named_items
from recbias.metrics.accuracy.named_items import (
    blockwise,
    check_cutoff,
    named,
    of_reviews,
    refuse_beyond,
)
from support.evidence_worlds import make_user_queries, make_vocabulary
from support.review_worlds import make_review_evidence


def test_predictions_are_needed() -> None:
    bare = Evidence(
        queries=make_user_queries(1), item_ids=make_vocabulary("i", 2), metric="class_MRR"
    )
    with pytest.raises(MissingEvidence, match="class_MRR needs predictions") as caught:
        named(bare)
    assert "names the items of reviews" in caught.value.remedy


def test_a_cutoff_behind_the_last_item_is_refused() -> None:
    refuse_beyond(None, 3)
    refuse_beyond(3, 3)
    with pytest.raises(OutOfRange, match="k is 4, but a model can name only 3 items") as caught:
        refuse_beyond(4, 3)
    assert (caught.value.where, caught.value.remedy) == ("k", "set k to 3 or less")


def test_the_candidates_alone_show_that_a_cutoff_is_too_large() -> None:
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
def test_the_size_of_a_block_does_not_show(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(named_items, "block_size", lambda _: size)
    predictions = named(make_review_evidence([0, 1, 2, 3, 4], [[0, 1]] * 5))
    found = blockwise(lambda rows: np.arange(5.0)[rows] ** 2, predictions)
    assert found.tolist() == [0, 1, 4, 9, 16]


def test_blocks_are_sized_by_what_a_review_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[int] = []

    def block_size(bytes_a_row: int) -> int:
        asked_for.append(bytes_a_row)
        return 9

    monkeypatch.setattr(named_items, "block_size", block_size)
    blockwise(
        lambda rows: np.zeros(1), named(make_review_evidence([0], [[0, 1, 2]])), bytes_a_row=16
    )
    assert asked_for == [16 + 3 * named_items.BYTES_A_PLACE]


def test_no_review_gives_no_value() -> None:
    assert blockwise(
        lambda _: np.ones(1), named(make_review_evidence([], np.empty((0, 3))))
    ).shape == (0,)


def test_the_units_are_reviews_by_their_ids() -> None:
    predictions = named(make_review_evidence([0, 1, 2], [[0, 1, 2]] * 3))
    (found,) = of_reviews(predictions, np.array([1.0, 0.0, np.nan]))
    assert found.units is not None
    assert (found.units.unit, found.units.ids.tolist()) == ("review", ["r0", "r1", "r2"])
    assert (found.value, found.n, found.undefined) == (0.5, 2, 1)
