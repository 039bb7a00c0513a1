"""Table 1 of Lichtenberg et al. (Gen-IR 2024): the desiderata of measures of popularity bias."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from recbias.core.dataset import AnyArray, FloatArray
from recbias.metrics.popularity import (
    GiniDifference,
    HerfindahlDifference,
    LogPopularityDifference,
    PopularityLift,
    _correlate_with_rank,
)
from recbias.reports import published

N_PAIRS, SIZE = 400, 8
METRICS: dict[str, Any] = {
    "Average popularity lift": PopularityLift,
    "Gini index": GiniDifference,
    "Herfindahl diversity": HerfindahlDifference,
    "Log popularity difference": LogPopularityDifference,
}

Compare = Callable[[FloatArray, FloatArray], FloatArray]


def make_comparison(system: str) -> Compare:
    """Return the value of pairs of a recommended and a consumed set, ``float64[p, n]`` each."""
    if system not in METRICS:
        return lambda recommended, _: _correlate_with_rank(recommended)
    metric = METRICS[system]()

    def aggregate(sets: FloatArray) -> FloatArray:
        starts = np.arange(0, sets.size + 1, sets.shape[1])
        rows = csr_array((np.ones(sets.size), np.arange(sets.size), starts))
        values: FloatArray = type(metric).aggregate(rows, metric._transform(sets.ravel()))
        return values

    return lambda recommended, consumed: metric._compare(
        aggregate(recommended), aggregate(consumed)
    )


def sample(coefficient: Any, size: int, rng: np.random.Generator) -> FloatArray:
    """Sample popularities of a power law, P(X > x) = x ** -coefficient."""
    return np.asarray((1.0 - rng.random((N_PAIRS, size))) ** (-1.0 / coefficient))


def increase(sets: FloatArray, columns: AnyArray, by: FloatArray) -> FloatArray:
    sets = sets.copy()
    sets[np.arange(len(sets)), columns] += by
    return sets


def is_well_behaved(compare: Compare, rng: np.random.Generator) -> bool:
    """Few pairs of a law without a mean do not dominate; larger sets do not spread more."""
    squares = [compare(*(sample(0.68, size, rng) for _ in "xy")) ** 2 for size in (8, 64, 512)]
    is_spread = all(part.max() <= 0.2 * part.sum() for part in squares)
    return is_spread and bool(squares[-1].mean() <= 1.25**2 * squares[0].mean())


def is_more_sensitive_in_the_tail(compare: Compare, x: FloatArray, y: FloatArray) -> bool:
    lowest, second = np.sort(x, axis=1)[:, :2].T
    step = np.minimum(second - lowest, 0.01 * lowest) / 2  # keeps the order
    least, most = (
        np.abs(compare(increase(x, columns, step), y) - compare(x, y))
        for columns in (x.argmin(axis=1), x.argmax(axis=1))
    )
    return bool((least > most * (1.0 + 1e-6)).all())


def is_monotone(compare: Compare, x: FloatArray, y: FloatArray) -> bool:
    before, columns = compare(x, y), np.arange(SIZE)[:, None].repeat(N_PAIRS, axis=1)
    return all(
        (compare(increase(x, item, 0.1 * x[:, item[0]]), y) > before).all()
        and (compare(x, increase(y, item, 0.1 * y[:, item[0]])) < before).all()
        for item in columns
    )


@pytest.mark.parametrize("system", [*METRICS, "Popularity rank correlation"])
def test_desiderata_equal_table_1(system: str) -> None:
    folder = Path(published.__file__).parent / "published_data" / "wok"
    table = pd.read_csv(folder / "table1_desiderata.csv")
    rows = table[table["metric"].str.startswith("desideratum") & (table["system"] == system)]
    compare, rng = make_comparison(system), np.random.default_rng(20240603)
    x, y = (sample(np.exp(rng.uniform(-0.35, 2.3, (N_PAIRS, 1))), SIZE, rng) for _ in "xy")
    met = (
        is_well_behaved(compare, rng),
        np.allclose(compare(x, rng.permuted(x, axis=1)), 0.0, atol=1e-9),
        np.allclose(compare(x, y), -compare(y, x)),
        is_more_sensitive_in_the_tail(compare, x, y),
        is_monotone(compare, x, y),
    )
    printed = rows.sort_values("metric")["value"].tolist()
    assert ["yes" if each else "no" for each in met] == printed
