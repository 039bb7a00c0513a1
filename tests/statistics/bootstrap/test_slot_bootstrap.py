from __future__ import annotations

import numpy as np
import pytest

from recbias.statistics.bootstrap import (
    combine_slot_samples,
    count_slot_dfs,
    list_slot_sets,
    sample_slot_weights,
)
from recbias.statistics.intervals import bootstrap_standard_error

ONE_CLASS = np.zeros((8, 5), dtype=int)
SAME = (np.repeat([0, 1], 4)[:, None] != np.array([0, 0, 0, 1, 1])).astype(int)


def test_sets_of_slots() -> None:
    assert list_slot_sets(3) == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert count_slot_dfs(SAME) == (6, 3)
    assert count_slot_dfs(ONE_CLASS) == (7, 4)


def test_words_of_a_class_keep_their_weight(rng: np.random.Generator) -> None:
    first, second, both = (
        weights.reshape(-1, 8, 5) for weights in sample_slot_weights(SAME, 40, rng)
    )
    assert (first == first[:, :, :1]).all()
    assert (second == second[:, :1]).all()
    for weights in (first, second, both):
        block = weights[:, :4, :3].sum(axis=(1, 2))
        assert block.tolist() == pytest.approx([12.0] * 40)
    assert both.tolist() == pytest.approx(1 + (first - 1) * (second - 1))


def test_a_word_alone_in_its_class_says_nothing_of_its_spread(rng: np.random.Generator) -> None:
    first, second, both = sample_slot_weights(SAME[:, 2:4], 3, rng)
    assert not np.isnan(first).any()
    assert np.isnan(second).all()
    assert np.isnan(both).all()


def test_what_words_do_alone_is_in_their_own_samples_only(rng: np.random.Generator) -> None:
    alone = rng.normal(size=(8, 1)) + np.zeros(5)
    means = [
        (weights @ alone.ravel()) / 40 for weights in sample_slot_weights(ONE_CLASS, 20_000, rng)
    ]
    # the standard error of a mean of 8 words; its own is 0.5% of it
    assert bootstrap_standard_error(means[0]) == pytest.approx(
        alone[:, 0].std(ddof=1) / np.sqrt(8), rel=0.03
    )
    assert bootstrap_standard_error(means[1]) == pytest.approx(0, abs=1e-12)
    assert bootstrap_standard_error(means[2]) == pytest.approx(0, abs=1e-12)


def test_what_words_do_together_counts_once() -> None:
    rng = np.random.default_rng(5)
    variances = []
    for _ in range(200):
        values = rng.normal(size=(8, 5))  # the variance of the mean is 1/40
        samples = [
            (weights @ values.ravel()) / 40 for weights in sample_slot_weights(ONE_CLASS, 200, rng)
        ]
        joined, _ = combine_slot_samples(np.asarray(values.mean()), np.stack(samples), (7, 4))
        variances.append(float(bootstrap_standard_error(joined)) ** 2)
    # taken for what words do alone as well it would be 3/40; it errs above, never being less than
    # what words do together
    assert 1 / 40 < np.mean(variances) < 1.7 / 40


def test_joined_samples_by_hand() -> None:
    # variances 2, 0.5 and 0.5: V = 2, of 2.5; samples 1 -+ 1 and 1 +- 0.5 -> (0.5 * 0.894...)
    samples = np.array([[[0.0], [2.0]], [[1.5], [0.5]], [[0.5], [1.5]]])
    combined, df = combine_slot_samples(np.array([1.0]), samples, (4, 2))
    scale = np.sqrt(2 / 2.5)
    assert combined[:, 0].tolist() == pytest.approx([1 - 0.5 * scale, 1 + 0.5 * scale])
    assert df.tolist() == pytest.approx([2.5**2 / (4 / 4 + 0.25 / 2)])


def test_one_set_is_taken_as_it_is() -> None:
    samples = np.arange(6.0).reshape(1, 3, 2)
    combined, df = combine_slot_samples(np.zeros(2), samples, (9,))
    assert combined.tolist() == samples[0].tolist()
    assert df.tolist() == [9, 9]
