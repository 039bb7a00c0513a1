from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from recbias.core.dataset.split import TrainingData
from recbias.core.stage_context import stage_context
from recbias.models.ranking.factor_model import FittedFactors
from recbias.models.training.early_stopping import EarlyStopping, has_judges, validation_ndcg
from support.worlds import rows

# user 0 lacks items 1, 2 and 3, user 1 lacks 0, 2 and 3; user 2 has no training row
TRAIN = rows([(0, 0), (1, 1), (1, 2), (1, 3), (0, 3)], n_users=3, n_items=4)
VALIDATION = rows([(0, 2), (1, 0), (2, 1)], n_users=3, n_items=4)
DATA = TrainingData(TRAIN, VALIDATION)


def scoring(*items: float) -> FittedFactors:
    """Everybody's scores of the four items."""
    vectors = np.array(items, dtype=np.float32)[:, None]
    return FittedFactors(np.ones((3, 1), dtype=np.float32), vectors)


def test_ndcg_by_hand() -> None:
    # user 0 is given 1, 2: its item at rank 2, so 1 / log2(3); user 1 is given 0: 1; user 2 is out
    expected = (1 / math.log2(3) + 1) / 2
    assert validation_ndcg(scoring(0, 5, 4, 3), DATA) == pytest.approx(expected)


def test_ndcg_cut_at_k() -> None:
    assert validation_ndcg(scoring(0, 5, 4, 3), DATA, 1) == pytest.approx(0.5)


def test_more_items_than_places_have_an_ideal_of_the_places() -> None:
    data = TrainingData(
        rows([(0, 0), (1, 1), (1, 2), (1, 3)]), rows([(0, 1), (0, 2)], n_users=2, n_items=4)
    )
    assert validation_ndcg(scoring(0, 5, 4, 3), data, 1) == pytest.approx(1)


@pytest.mark.parametrize(
    "validation", [None, rows([], n_users=3, n_items=4), rows([(2, 1)], n_users=3, n_items=4)]
)
def test_nobody_to_judge_is_undefined(validation: object) -> None:
    data = TrainingData(TRAIN, validation)  # type: ignore[arg-type]  # parametrised
    assert math.isnan(validation_ndcg(scoring(0, 5, 4, 3), data))
    assert not has_judges(data)
    assert not EarlyStopping(has_judges(data), patience=3).judges


def test_no_patience_does_not_look() -> None:
    assert not EarlyStopping(has_judges(DATA), patience=0).judges
    assert EarlyStopping(has_judges(DATA), patience=1).judges


def test_it_waits_as_long_as_its_patience_and_keeps_the_best() -> None:
    stopping, value = EarlyStopping(has_judges(DATA), patience=2), torch.zeros(1)
    quality = [scoring(0, 5, 4, 3), scoring(0, 4, 5, 3), scoring(0, 5, 4, 3), scoring(0, 5, 4, 3)]
    over = []
    for epoch, fitted in enumerate(quality):
        value.fill_(epoch)
        stopping.judge(validation_ndcg(fitted, DATA), [value])
        over.append(stopping.is_over)
    assert over == [False, False, False, True]
    stopping.restore([value])
    assert value.item() == 1


def test_whoever_wants_to_know_is_told_and_nothing_is_kept_without_patience() -> None:
    stopping, value, heard = EarlyStopping(has_judges(DATA), patience=0), torch.zeros(1), []
    with stage_context(on_validation=lambda *each: heard.append(each)):
        assert stopping.judges
        stopping.judge(0.25, [value])
    assert heard == [(1, 0.25)]
    assert not stopping.is_over
    assert not stopping.kept


def test_earlier_judgements_are_told_again_and_count() -> None:
    stopping, heard = EarlyStopping(has_judges(DATA), patience=2), []
    with stage_context(on_validation=lambda *each: heard.append(each)):
        stopping.take_up([0.3, 0.1, 0.2], [torch.full((1,), 7.0)])
    assert heard == [(1, 0.3), (2, 0.1), (3, 0.2)]
    assert stopping.is_over
    value = torch.zeros(1)
    stopping.restore([value])
    assert value.item() == 7


def test_nothing_judged_restores_nothing() -> None:
    value = torch.ones(1)
    EarlyStopping(has_judges(DATA), patience=2).restore([value])
    assert value.item() == 1
