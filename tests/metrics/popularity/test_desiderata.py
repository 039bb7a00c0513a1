from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.core.arrays import FloatArray
from recbias.metrics.popularity.desiderata import NAMES, ComparesSets, desiderata
from recbias.metrics.popularity.mean_popularity import LogPopularityDifference, PopularityLift
from recbias.metrics.popularity.profile import (
    GiniDifference,
    HerfindahlDifference,
    PopularityRankCorrelation,
)
from recbias.reports.published_tables import compare_published as published

OF_THE_PAPER: dict[str, type[ComparesSets]] = {
    "Average popularity lift": PopularityLift,
    "Gini index": GiniDifference,
    "Popularity rank correlation": PopularityRankCorrelation,
    "Herfindahl diversity": HerfindahlDifference,
    "Log popularity difference": LogPopularityDifference,
}


def table_1() -> pd.DataFrame:
    folder = Path(published.__file__).parent / "published" / "wok"
    table = pd.read_csv(folder / "table1_desiderata.csv")
    return table[table["metric"].str.startswith("desideratum")]


def test_table_1_has_the_five_properties_of_the_five_metrics() -> None:
    table = table_1()
    assert set(table["system"]) == set(OF_THE_PAPER)
    assert len(table) == 25


@pytest.mark.parametrize("system", list(OF_THE_PAPER))
def test_table_1_comes_out_again(system: str) -> None:
    rows = table_1()
    printed = rows[rows["system"] == system].sort_values("metric")["value"].tolist()
    found = desiderata(OF_THE_PAPER[system]())
    assert [each.number for each in found] == [1, 2, 3, 4, 5]
    assert tuple(each.name for each in found) == NAMES
    assert ["yes" if each.met else "no" for each in found] == printed


def mean(sets: FloatArray) -> FloatArray:
    return np.asarray(sets.mean(axis=-1))


class MeanOfRoots:
    """Tenth roots have a mean in a power law of 0.68, and weigh the tail more."""

    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return mean(recommended**0.1) - mean(consumed**0.1)


class Shifted:
    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return mean(np.log(recommended)) - mean(np.log(consumed)) + 1.0


class LogOfMeans:
    """The log tames the mean, but the rarest item moves it as much as the most popular."""

    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return np.log(mean(recommended)) - np.log(mean(consumed))


class Grows:
    """A sum of logs: it spreads the further the more items there are."""

    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return np.asarray(np.log(recommended).sum(axis=-1) - np.log(consumed).sum(axis=-1))


class Squares:
    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return mean(recommended**2) - mean(consumed**2)


class Reversed:
    def of_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        return mean(np.log(consumed)) - mean(np.log(recommended))


@pytest.mark.parametrize(
    ("measure", "met"),
    [
        (MeanOfRoots(), "1 2 3 4 5"),
        (Shifted(), "1 4 5"),
        (LogOfMeans(), "1 2 3 5"),
        (Grows(), "2 3 4 5"),
        (Squares(), "2 3 5"),
        (Reversed(), "1 2 3 4"),
    ],
)
def test_each_property_is_told_by_itself(measure: ComparesSets, met: str) -> None:
    assert " ".join(str(each.number) for each in desiderata(measure) if each.met) == met


def test_the_check_says_the_same_each_time() -> None:
    assert desiderata(GiniDifference()) == desiderata(GiniDifference())
