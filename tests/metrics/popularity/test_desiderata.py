from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.metrics.popularity import (
    NAMES,
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


@pytest.mark.parametrize("system", list(METRICS_OF_THE_PAPER))
def test_desiderata_equal_table_1(system: str) -> None:
    rows = read_table_1()
    printed = rows[rows["system"] == system].sort_values("metric")["value"].tolist()
    desiderata = evaluate_desiderata(METRICS_OF_THE_PAPER[system]().compare_sets)
    assert [desideratum.number for desideratum in desiderata] == [1, 2, 3, 4, 5]
    assert tuple(desideratum.name for desideratum in desiderata) == NAMES
    assert ["yes" if desideratum.met else "no" for desideratum in desiderata] == printed
