"""The joint test of a claim, its estimates, and the shares of its choices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from recbias.statistics.multiverse import (
    Contrasts,
    compute_joint_test,
    decompose_variance,
    estimate,
)

RNG = np.random.default_rng(8)


def test_estimates_without_groups_are_those_of_the_paired_t_test() -> None:
    first, second = RNG.normal(size=(2, 3, 12))
    first[0, :2] = np.nan
    estimates = estimate(Contrasts(first, second))
    for row in range(3):
        used = ~np.isnan(first[row])
        expected = stats.ttest_rel(first[row, used], second[row, used])
        interval = expected.confidence_interval()
        assert estimates.value[row] == pytest.approx((first - second)[row, used].mean())
        assert estimates.p[row] == pytest.approx(expected.pvalue)
        assert [ends[row] for ends in estimates.ends] == pytest.approx([*interval])


def test_gaps_are_compared_by_welch() -> None:
    first, groups = RNG.normal(size=(1, 20)), np.repeat([[1, 0]], 10, axis=0).reshape(1, -1)
    estimates = estimate(Contrasts(first, None, groups.astype(np.int8)))
    expected = stats.ttest_ind(first[groups == 1], first[groups == 0], equal_var=False)
    assert estimates.p[0] == pytest.approx(expected.pvalue)
    assert estimates.df[0] == pytest.approx(expected.df)


def test_the_difference_of_absolute_gaps() -> None:
    groups = np.array([[1, 1, 0, 0]], dtype=np.int8)
    first, second = np.array([[0.0, 0.2, 0.5, 0.7]]), np.array([[0.4, 0.4, 0.3, 0.1]])
    absolute = estimate(Contrasts(first, second, groups, absolute=True)).value[0]
    assert absolute == pytest.approx(0.5 - 0.2)
    assert estimate(Contrasts(first, second, groups)).value[0] == pytest.approx(-0.5 - 0.2)


def test_the_joint_test_is_that_of_all_sign_flips() -> None:
    differences = np.array([[1.0, 2.0, 3.0, -1.0, 4.0], [0.5, 1.0, np.nan, 2.0, 1.0]])
    contrasts = Contrasts(differences, np.zeros_like(differences))
    joint = compute_joint_test(contrasts, np.random.default_rng(0), n=20_000)
    flips = np.array([*product((1.0, -1.0), repeat=5)])
    totals = np.nan_to_num(differences) @ flips.T
    z = totals / totals.std(axis=1, keepdims=True)
    exact = (z.mean(axis=0) >= z.mean(axis=0)[0] - 1e-12).mean()
    assert joint.p["mean_z"] == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("kind", ["models", "labels", "gaps"])
def test_correlated_universes_of_a_fair_world_are_rejected_in_five_of_a_hundred(kind: str) -> None:
    rng, n_rejected = np.random.default_rng(2), 0
    for _ in range(200):
        own, other = rng.normal(size=(2, 1, 60)) + 0.4 * rng.normal(size=(2, 8, 60))
        groups = np.repeat((rng.random((1, 60)) < 0.3).astype(np.int8), 8, axis=0)
        contrasts = {
            "models": Contrasts(own, other),
            "labels": Contrasts(own, None, groups),
            "gaps": Contrasts(own, other, groups, absolute=True),
        }[kind]
        n_rejected += compute_joint_test(contrasts, rng, n=199).p["mean_z"] <= 0.05
    assert 2 <= n_rejected <= 20  # 10 expected; 99.9% of binomial draws


def test_an_effect_in_all_universes_is_found() -> None:
    own = RNG.normal(size=(1, 100)) + 0.1 * RNG.normal(size=(5, 100))
    joint = compute_joint_test(Contrasts(own + 0.4, np.zeros((5, 100))), RNG, n=199)
    assert joint.p["mean_z"] == 1 / 200
    reverse = compute_joint_test(
        Contrasts(own + 0.4, np.zeros((5, 100))), RNG, higher=False, n=199
    )
    assert reverse.p["mean_z"] == 1.0


def test_shares_of_a_full_factorial_are_its_analysis_of_variance() -> None:
    options = np.array([*product(range(3), range(2), range(2), range(5))])
    a, b, c, _ = options.T
    values = a + 2.0 * b + 3.0 * (b == 1) * (c == 1)
    shares = {each.choices: each.share for each in decompose_variance(values, options)}
    total = values.var()
    mean_b = [values[b == level].mean() for level in (0, 1)]
    cells = [values[(b == i) & (c == j)].mean() for i in (0, 1) for j in (0, 1)]
    mean_c = [values[c == level].mean() for level in (0, 1)]
    assert shares[0,] == pytest.approx(a.var() / total)
    assert shares[1,] == pytest.approx(np.var(mean_b) / total)
    interaction = np.var(cells) - np.var(mean_b) - np.var(mean_c)
    assert shares[1, 2] == pytest.approx(interaction / total)
    assert sum(shares.values()) == pytest.approx(1.0)


def test_hits_have_the_intervals_of_shares() -> None:
    hits = np.repeat([1.0, 0.0, 1.0, 0.0], [56, 14, 48, 32])[None]
    groups = np.repeat([1, 0], [70, 80]).astype(np.int8)[None]
    gap = estimate(Contrasts(hits, None, groups))
    assert [float(gap.ends[0][0]), float(gap.ends[1][0])] == pytest.approx(
        [0.0524, 0.3339],
        abs=5e-5,  # Newcombe 1998, table II, method 10
    )
    mean = estimate(Contrasts(hits[:, 70:78], np.full((1, 8), 0.5)))  # 8 of 8
    assert float(mean.ends[0][0]) == pytest.approx(0.6756 - 0.5, abs=5e-5)
    assert float(mean.p[0]) == pytest.approx(0.004678, abs=1e-6)  # z = 0.5 / sqrt(0.25 / 8)


def test_the_mean_hit_of_one_model_has_wilsons_interval() -> None:
    estimates = estimate(Contrasts(np.array([[1.0, 1.0, 0.0, 0.0]])))
    interval = stats.binomtest(2, 4).proportion_ci(method="wilson")
    assert [ends[0] for ends in estimates.ends] == pytest.approx([interval.low, interval.high])


def test_estimates_are_those_of_the_specification_curve_package() -> None:
    # pip install specification-curve==0.3.9; its specifications without the control c of
    # SpecificationCurve(DataFrame({"y1": ..., "a": t % 2, "c": cos(t)}), [y1, y2, y3], [a], [c])
    t = np.arange(40)
    values = np.array([np.sin(k * t) + 0.3 * k * (t % 2) for k in (1, 2, 3)])
    estimates = estimate(Contrasts(values, None, np.tile((t % 2).astype(np.int8), (3, 1))))
    expected = [0.34139413934938406, 0.6183859254247457, 0.9800230838248285]
    errors = [0.2284476773767975, 0.2265856935878482, 0.23743991006244364]
    assert estimates.value == pytest.approx(expected, abs=1e-12)
    assert estimates.error == pytest.approx(errors, abs=1e-12)
