from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from recbias.language.likelihood import linearise_means, mark_within_deviations


def test_deviation_is_the_population_standard_deviation() -> None:
    # nineteen 0 and one 20: mean 1, variance (19 + 361)/20 = 19, sd 4.3589; 20 lies 4.3589 sd off
    values = np.array([0.0] * 19 + [20.0])
    assert mark_within_deviations(values, 4.35).tolist() == [True] * 19 + [False]
    assert mark_within_deviations(values, 4.36).all()  # by n - 1 it would lie 4.2485 sd off


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
def test_equal_values_are_within(value: float) -> None:
    assert mark_within_deviations(np.full(7, value), 3).all()


def test_missing_values_are_outside_and_excluded_from_the_mean() -> None:
    assert mark_within_deviations(np.array([1.0, np.nan, 3.0]), 1).tolist() == [True, False, True]
    assert not mark_within_deviations(np.full(3, np.nan), 3).any()
    assert mark_within_deviations(np.zeros(0), 3).size == 0


def test_linearised_values_are_those_worked_by_hand() -> None:
    # -4, 0 (eight times), 1, 3: mean 0, variance (16 + 1 + 9) / 11 = 2.3636, sd 1.5374. Within 2
    # sd (3.0748) all but -4: T = 4/10 = 0.4. Limits 1 sd out keep all (mean 0), the upper 1 sd in
    # drops 3 also (1/9), the lower one in keeps the same ten. Changes: below 0 - 0.4 = -0.4,
    # above 0.4 - 1/9, and u = x / sd.
    values = np.array([-4.0, *[0.0] * 8, 1.0, 3.0])
    sd = np.sqrt(26 / 11)
    u = values / sd
    near = np.where(values == -4, 0.0, values - 0.4) * 11 / 10
    below = (-0.4 / 2) * (-u + 2 * (u**2 - 1) / 2)
    above = ((0.4 - 1 / 9) / 2) * (u + 2 * (u**2 - 1) / 2)
    linear = linearise_means(values[None], values[None], [values], 2)
    assert linear[0] == pytest.approx(0.4 + near + below + above)
    assert linear.mean() == pytest.approx(0.4)


def test_linearised_values_without_outliers_or_spread_are_the_values() -> None:
    values = np.array([[1.0, 2.0, 3.0, 4.0]])
    assert linearise_means(values, values, [values[0]], 5) == pytest.approx(values)
    equal = np.full((1, 5), 1e9 / 3)
    assert linearise_means(equal, equal, [equal[0]], 3) == pytest.approx(equal)


def test_the_variance_of_linearised_values_is_that_over_samples() -> None:
    rng = np.random.default_rng(3)
    samples = np.exp(rng.normal(0, 0.6, (2000, 200)))
    linear = np.stack([linearise_means(x[None], x[None], [x], 3)[0] for x in samples])
    kept = [x[mark_within_deviations(x, 3)] for x in samples]
    spread = np.std([x.mean() for x in kept])
    assert linear.mean(axis=1) == pytest.approx([x.mean() for x in kept])
    errors = [np.mean(x.std(axis=-1) / np.sqrt(x.shape[-1])) for x in linear]
    assert np.mean(errors) == pytest.approx(spread, rel=0.05)
    plain = np.mean([x.std() / np.sqrt(x.size) for x in kept])
    assert plain < 0.92 * spread  # the limits depend on the sample
    halves = zip(linear[::2], linear[1::2], strict=True)
    p = [stats.ttest_ind(a, b, equal_var=False).pvalue for a, b in halves]
    assert 0.03 <= np.mean(np.array(p) <= 0.05) <= 0.07
