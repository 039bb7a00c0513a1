from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from recbias.core.dataset import AnyArray
from recbias.statistics.permutation import SlotComparison, SlotExchange, permute_slots

SAME = SlotComparison(np.array([[True, False]]), np.array([[False, True]]), np.subtract)


def mark_unlike(a: list[int], b: list[int]) -> AnyArray:
    """0 where both are of one class, else 1."""
    return np.asarray(np.array(a)[:, None] != np.array(b), dtype=np.intp)


def test_words_are_of_one_class_where_they_have_the_same_labels() -> None:
    exchange = SlotExchange.from_labels(mark_unlike([0, 1, 0, 1], [1, 1, 0]))
    assert [classes.tolist() for classes in exchange.classes] == [[1, 0, 1, 0], [1, 1, 0]]
    assert exchange.n_labellings == 6 * 3
    assert exchange.table.shape == (2, 2)


@pytest.mark.parametrize("b", [[0, 1], [0, 0, 1], [0, 0, 1, 1]])
def test_every_way_is_that_of_permuted_words(b: list[int]) -> None:
    labels = mark_unlike([0, 0, 1], b)
    exchange = SlotExchange.from_labels(labels)
    labellings = np.concatenate(list(exchange.enumerate_labellings(5)))
    assert len(labellings) == exchange.n_labellings
    rows = permutations(range(3))
    theirs = {
        tuple(labels[np.ix_(row, column)].ravel())
        for row in rows
        for column in permutations(range(len(b)))
    }
    assert {tuple(labelling) for labelling in labellings.tolist()} == theirs


def test_p_by_hand() -> None:
    # first words f, m; second f, m; the diagonal is "same": 4 0 / 1 3 -> 3.5 - 0.5 = 3
    # of 2 * 2 ways two leave the labels as they are and two turn them: all as far from 0
    values = np.array([[4.0], [0.0], [1.0], [3.0]])
    statistic, p = permute_slots(
        values, mark_unlike([0, 1], [0, 1]), SAME, rng=np.random.default_rng(0)
    )
    assert (statistic.tolist(), p.tolist()) == ([[3.0]], [[1.0]])


def test_what_words_do_alone_is_no_difference(rng: np.random.Generator) -> None:
    labels = mark_unlike([0] * 4 + [1] * 4, [0] * 3 + [1] * 3)
    alone = rng.normal(0, 5, (8, 1)) + rng.normal(0, 5, 6)
    statistic, p = permute_slots(alone.reshape(-1, 1), labels, SAME, rng=rng)
    assert statistic.item() == pytest.approx(0)
    planted = alone - 0.1 * labels + rng.normal(0, 0.01, (8, 6))
    statistic, p = permute_slots(
        planted.reshape(-1, 1), labels, SAME, n_permutations=2000, rng=rng
    )
    assert statistic.item() == pytest.approx(0.1, abs=0.01)
    # 70 * 20 = 1,400 ways: the observed one, and those with all genders of a slot, or both, turned
    assert p.item() == pytest.approx(4 / 1400)


def test_nothing_to_exchange_and_undefined_figures_have_no_p() -> None:
    rng = np.random.default_rng(0)
    values = np.ones((4, 1))
    _, p = permute_slots(values, np.zeros((2, 2), dtype=int), SAME, rng=rng)
    assert np.isnan(p).all()
    shares = SlotComparison(SAME.first, SAME.second, lambda a, b: (a - b) / (a - a))
    _, p = permute_slots(values, mark_unlike([0, 1], [0, 1]), shares, rng=rng)
    assert np.isnan(p).all()


def test_a_test_of_nothing_rejects_at_its_level(rng: np.random.Generator) -> None:
    labels = mark_unlike([0] * 8 + [1] * 8, [0] * 3 + [1] * 3)
    p_values = []
    for _ in range(300):
        values = rng.normal(size=(16, 1)) + rng.normal(size=6) + 0.3 * rng.normal(size=(16, 6))
        _, p = permute_slots(values.reshape(-1, 1), labels, SAME, n_permutations=199, rng=rng)
        p_values.append(p.item())
    # 5% of 300 is 15, standard error 3.8
    assert 4 <= sum(p <= 0.05 for p in p_values) <= 28
