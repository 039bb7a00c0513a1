"""The e-values are those of confseq 0.0.11, which was run in an environment of its own.

It needs Boost, and is older than NumPy 2 (``np.float_ = np.float64`` before its import):

    lambdas = lambda x, m: lambda_predmix_eb(x, alpha=0.025)  # log(1/α) there, log(2/α) here
    betting_mart(x, m, lambdas_fn_positive=lambdas, convex_comb=True)
    normal_log_mixture(s, v, v_opt=10.0, alpha_opt=0.05, is_one_sided=False)
"""

from __future__ import annotations

import numpy as np
import pytest

from recbias.statistics.confidence_sequences import (
    Betting,
    NormalMixture,
    find_best_rho,
    find_interval,
    mix_normal,
)

VALUES = np.array([0.9, 0.4, 0.75, 1.0, 0.1, 0.85, 0.6, 0.95])


@pytest.mark.parametrize(
    ("mean", "capital"),
    [
        (0.3, [1.28571429, 1.43197279, 2.22169582, 4.51362569]),
        (0.5, [1.0, 0.96, 1.035, 1.305, 0.882, 1.069425, 1.153845, 1.58185913]),
        (0.9, [1.0, 2.06415373, 3.05993581, 2.08019791, 6.22587773, 6.92993162]),
    ],
)
def test_bets_have_the_capital_of_confseq(mean: float, capital: list[float]) -> None:
    e = np.exp(Betting().log_e(VALUES, mean))
    np.testing.assert_allclose(e[: len(capital)], capital, rtol=1e-8)
    shifted = np.exp(Betting(-1.0, 1.0).log_e(2 * VALUES - 1, 2 * mean - 1))
    np.testing.assert_allclose(shifted, e)


@pytest.mark.parametrize(
    ("alpha", "log_e"),
    [
        (0.05, [-0.23680833, 0.14101146, 1.33935014]),
        (0.025, [-0.27309189, 0.10624312, 1.30883455]),
    ],
)
def test_the_normal_mixture_is_that_of_confseq(alpha: float, log_e: list[float]) -> None:
    s, v = np.array([0.5, -3.0, 7.0]), np.array([1.0, 4.0, 9.0])
    mixed = mix_normal(s, v, find_best_rho(10.0, alpha))
    np.testing.assert_allclose(mixed, log_e, atol=1e-8)


def test_the_ends_of_a_sequence_are_the_means_at_which_the_e_value_is_the_limit(
    rng: np.random.Generator,
) -> None:
    values = rng.normal(0.2, 1.0, 200)
    ends = find_interval(NormalMixture(), values, 0.05)
    assert ends[0] < values.mean() < ends[1]
    for end in ends:
        assert NormalMixture().log_e(values, end)[-1] == pytest.approx(np.log(20), abs=1e-6)
