from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import FloatArray
from recbias.metrics.popularity import (
    NAMES,
    Comparison,
    GiniDifference,
    HerfindahlDifference,
    LogPopularityDifference,
    PopularityLift,
    PopularityRankCorrelation,
    evaluate_desiderata,
)
from recbias.reports import published

METRICS_OF_THE_PAPER: dict[str, Any] = {
    "Average popularity lift": PopularityLift,
    "Gini index": GiniDifference,
    "Popularity rank correlation": PopularityRankCorrelation,
    "Herfindahl diversity": HerfindahlDifference,
    "Log popularity difference": LogPopularityDifference,
}


def read_table_1() -> pd.DataFrame:
    folder = Path(published.__file__).parent / "published_data" / "wok"
    table = pd.read_csv(folder / "table1_desiderata.csv")
    return table[table["metric"].str.startswith("desideratum")]


def test_table_1_has_five_desiderata_of_five_metrics() -> None:
    table = read_table_1()
    assert set(table["system"]) == set(METRICS_OF_THE_PAPER)
    assert len(table) == 25


@pytest.mark.parametrize("system", list(METRICS_OF_THE_PAPER))
def test_desiderata_equal_table_1(system: str) -> None:
    rows = read_table_1()
    printed = rows[rows["system"] == system].sort_values("metric")["value"].tolist()
    desiderata = evaluate_desiderata(METRICS_OF_THE_PAPER[system]().compare_sets)
    assert [desideratum.number for desideratum in desiderata] == [1, 2, 3, 4, 5]
    assert tuple(desideratum.name for desideratum in desiderata) == NAMES
    assert ["yes" if desideratum.met else "no" for desideratum in desiderata] == printed


def mean(sets: FloatArray) -> FloatArray:
    return np.asarray(sets.mean(axis=-1))


class MeanOfRoots:
    """Tenth roots have a mean under a power law of 0.68, and weight the tail more."""

    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return mean(recommended**0.1) - mean(consumed**0.1)


class Shifted:
    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return mean(np.log(recommended)) - mean(np.log(consumed)) + 1.0


class LogOfMeans:
    """The rarest item changes the value as much as the most popular one."""

    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return np.log(mean(recommended)) - np.log(mean(consumed))


class SumOfLogs:
    """A sum of logs, which spreads more for larger sets."""

    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return np.asarray(np.log(recommended).sum(axis=-1) - np.log(consumed).sum(axis=-1))


class Squares:
    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return mean(recommended**2) - mean(consumed**2)


class Reversed:
    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return mean(np.log(consumed)) - mean(np.log(recommended))


@pytest.mark.parametrize(
    ("compare", "met"),
    [
        (MeanOfRoots().compare_sets, "1 2 3 4 5"),
        (Shifted().compare_sets, "1 4 5"),
        (LogOfMeans().compare_sets, "1 2 3 5"),
        (SumOfLogs().compare_sets, "2 3 4 5"),
        (Squares().compare_sets, "2 3 5"),
        (Reversed().compare_sets, "1 2 3 4"),
    ],
)
def test_each_desideratum_is_evaluated_separately(compare: Comparison, met: str) -> None:
    assert (
        " ".join(
            str(desideratum.number)
            for desideratum in evaluate_desiderata(compare)
            if desideratum.met
        )
        == met
    )


def test_evaluation_is_deterministic() -> None:
    assert evaluate_desiderata(GiniDifference().compare_sets) == evaluate_desiderata(
        GiniDifference().compare_sets
    )
