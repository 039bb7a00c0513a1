from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias import api
from recbias.config.plugin_spec import Grouping
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import BrokenContract, NothingLeft
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import collect_warnings
from recbias.runner.stages.grouping import SplitFigures, groups_of

SPEC: dict[str, Any] = {
    "name": "split",
    "dataset": {"name": "demo", "n_users": 60, "n_items": 60, "per_user": 12},
    "split": {"name": "random", "test": 0.2},
    "models": ["MostPop"],
}


def asked(labels: list[str | None]) -> Queries:
    ids = Vocabulary.of([f"u{each}" for each in range(len(labels))])
    table = Attributes(ids, pd.DataFrame({"g": labels}), "user")
    return Queries(ids, table, np.arange(len(labels), dtype=np.int32))


def figure(queries: Queries, values: list[float], *, share: bool = False) -> Measurement:
    return Measurement.from_units(UnitScores("user", queries.ids.ids, np.array(values), share))


def test_figures_are_split_and_the_rest_is_counted() -> None:
    queries = asked(["a", "a", "b", None])
    split = SplitFigures("nDCG", Grouping("g", "groups"))
    with collect_warnings() as notes:
        found = split(queries, [figure(queries, [0.2, 0.4, 0.9, 1.0])])
    # a: (0.2 + 0.4) / 2, b: 0.9 of one query; the last has no label
    assert [(each.group, each.n) for each in found] == [("g=a", 2), ("g=b", 1)]
    assert found[0].value == pytest.approx(0.3)
    assert notes == [
        "nDCG: 1 queries have no label 'g'",
        "nDCG: g=b holds one query, which gives no interval and no test",
    ]


def test_a_share_stays_a_share() -> None:
    queries = asked(["a", "a", "b", "b"])
    (a, _) = SplitFigures("HR", Grouping("g", "groups"))(
        queries, [figure(queries, [1.0, 1.0, 0.0, 1.0], share=True)]
    )
    # Wilson: 2 of 2 is from 1 / (1 + 1.959964^2 / 2) to 1
    assert (a.ci_low, a.ci_high) == pytest.approx((1 / (1 + 1.959964**2 / 2), 1.0), abs=1e-6)


def test_a_gap_is_one_figure_without_warnings_of_its_own() -> None:
    queries = asked(["a", "b", "b", None])
    split = SplitFigures("nDCG", Grouping("g", "difference"))
    with collect_warnings() as notes:
        (found,) = split(queries, [figure(queries, [0.2, 0.4, 0.8, 1.0])])
    assert found.value == pytest.approx(0.4)
    assert math.isnan(found.ci_low)
    assert notes == []


def test_what_has_no_value_a_query_is_refused() -> None:
    queries = asked(["a", "b"])
    with pytest.raises(BrokenContract, match="no value for each query"):
        SplitFigures("Gini", Grouping("g", "groups"))(queries, [Measurement(1.0, 1, 0)])


def test_one_group_is_refused() -> None:
    with pytest.raises(NothingLeft, match="one group, g=a"):
        groups_of(asked(["a", "a", None]), "g")


def test_a_metric_is_measured_once_for_all_its_parts(tmp_path: Path) -> None:
    spec = SPEC | {"metrics": ["nDCG", {"name": "nDCG", "by": "gender"}]}
    (chain,) = api.plan(spec, out=tmp_path)[0].model_plans
    assert len(chain.measures) == 5  # nDCG itself, the groups and three gaps
    assert len(chain.measuring) == 5  # and no second nDCG
    alone = SPEC | {"metrics": [{"name": "nDCG", "by": "gender"}]}
    (chain,) = api.plan(alone, out=tmp_path)[0].model_plans
    assert (len(chain.measures), len(chain.measuring)) == (4, 5)


def test_the_groups_are_those_of_the_whole(tmp_path: Path) -> None:
    spec = SPEC | {"metrics": ["HR", {"name": "HR", "by": "gender"}]}
    run = recbias.run(spec, out=tmp_path)
    rows = run.metrics[run.metrics["metric"] == "HR(by=gender)"]
    n, value = rows["n"].to_numpy(dtype=float), rows["value"].to_numpy(dtype=float)
    whole = run.metrics.loc[run.metrics["metric"] == "HR", "value"].to_numpy(dtype=float)
    assert (n @ value) / n.sum() == pytest.approx(whole[0])
