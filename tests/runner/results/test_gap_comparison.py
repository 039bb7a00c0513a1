from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recbias.core.errors import MixedRuns
from recbias.runner.results.gap_comparison import MOST_GROUPS, compare_gaps
from recbias.runner.results.run_comparison import COLUMNS, RunFrames

PLACE = {"dataset": "d", "model": "m", "seed": 1, "fold": 1, "metric": "M", "k": 5, "target": ""}


def run(label: str, groups: dict[str, dict[str, float]]) -> RunFrames:
    """A run of one figure: the value of each unit, by group."""
    metrics = [
        {**PLACE, "group": group, "value": float(np.mean([*units.values()]))}
        for group, units in groups.items()
    ]
    per_unit = [
        {**PLACE, "group": group, "unit_id": unit, "value": value}
        for group, units in groups.items()
        for unit, value in units.items()
    ]
    return RunFrames(label, pd.DataFrame(metrics), pd.DataFrame(per_unit))


BLACK, WHITE = ["Latoya", "Hakim", "Jamal"], ["Emily", "Brett", "Jake", "Anne"]


def named(black: list[float], white: list[float], **others: dict[str, float]) -> RunFrames:
    """A run with two races of names of their own."""
    groups = {
        "race=black": dict(zip(BLACK, black, strict=True)),
        "race=white": dict(zip(WHITE, white, strict=True)),
    }
    return run("x", {**groups, **others})


def test_names_of_two_groups_are_each_compared_with_themselves() -> None:
    before = named([1.0, 1.5, 2.0], [2.5, 3.0, 2.5, 4.0])
    after = named([2.0, 2.0, 2.0], [2.0, 3.0, 2.0, 3.0])
    table = compare_gaps([before, after])
    assert list(table.columns) == list(COLUMNS)
    (row,) = table.to_dict("records")
    assert row["group"] == "race=black - race=white"
    # 1.5 - 3, 2 - 2.5, and how far these are apart
    assert (row["value_a"], row["value_b"], row["difference"]) == (-1.5, -0.5, -1.0)
    changed = stats.ttest_ind([-1.0, -0.5, 0.0], [0.5, 0.0, 0.5, 1.0], equal_var=False)
    assert (row["n"], row["p"]) == (7, pytest.approx(changed.pvalue, rel=1e-10))
    assert row["p_adjusted"] == row["p"]


def test_groups_that_share_their_templates_are_paired_by_them() -> None:
    before = run(
        "a", {"place=bar": {"t1": 3, "t2": 2, "t3": 4}, "place=zoo": {"t1": 1, "t2": 1, "t3": 1}}
    )
    after = run(
        "b", {"place=bar": {"t1": 2, "t2": 2, "t3": 1}, "place=zoo": {"t1": 2, "t2": 1, "t3": 1}}
    )
    (row,) = compare_gaps([before, after]).to_dict("records")
    # gaps of the templates: 2, 1, 3 before; 0, 1, 0 after
    expected = stats.ttest_rel([2, 1, 3], [0, 1, 0]).pvalue
    assert (row["n"], row["p"]) == (3, pytest.approx(expected, rel=1e-10))
    assert row["difference"] == pytest.approx(2 - 1 / 3)


def test_where_all_change_alike_within_the_groups_there_is_no_p() -> None:
    before, after = named([1.0] * 3, [3.0] * 4), named([2.0] * 3, [2.0] * 4)
    (row,) = compare_gaps([before, after]).to_dict("records")
    assert row["difference"] == -2
    assert np.isnan(row["p"])


def test_only_values_of_one_label_are_compared() -> None:
    others = {"neutral": {"t1": 1.0}, "gender=male": {"Jake": 1.0, "Hakim": 2.0}}
    runs = [named([1.0, 2.0, 3.0], [2.0, 1.0, 1.0, 2.0], **others) for _ in range(2)]
    assert compare_gaps(runs)["group"].tolist() == ["race=black - race=white"]


def test_other_units_and_figures_without_units_are_left_out() -> None:
    before = named([1.0, 2.0, 3.0], [2.0, 1.0, 1.0, 2.0])
    other = run("y", {"race=black": {"Aisha": 1.0}, "race=white": {"Emily": 1.0}})
    assert compare_gaps([before, other]).empty
    assert compare_gaps([before, RunFrames("y", before.metrics, None)]).empty


def test_many_groups_are_not_compared_two_by_two() -> None:
    units = {"t1": 1.0, "t2": 2.0}
    for n, pairs in ((MOST_GROUPS, 45), (MOST_GROUPS + 1, 0)):
        runs = [run("a", {f"place={each}": units for each in range(n)}) for _ in range(2)]
        assert len(compare_gaps(runs)) == pairs


def test_runs_that_share_nothing_are_refused() -> None:
    a = run("a", {"race=black": {"Aisha": 1.0}})
    b = RunFrames("b", a.metrics.assign(model="other"), a.per_unit)
    with pytest.raises(MixedRuns, match="share no figure"):
        compare_gaps([a, b])
