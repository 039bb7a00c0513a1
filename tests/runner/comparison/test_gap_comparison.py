from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from recbias.runs.compare import COLUMNS, RunFrames, compare_gaps, compare_runs, pair_runs

KEYS = {"dataset": "d", "model": "m", "seed": 1, "fold": 1, "metric": "M", "k": 5, "target": ""}


def make_run(label: str, groups: dict[str, dict[str, float]]) -> RunFrames:
    """Return a run of one metric with the value of each unit, by group."""
    metrics = [
        {**KEYS, "group": group, "value": float(np.mean([*units.values()]))}
        for group, units in groups.items()
    ]
    per_unit = [
        {**KEYS, "group": group, "unit_id": unit, "value": value}
        for group, units in groups.items()
        for unit, value in units.items()
    ]
    return RunFrames(label, pd.DataFrame(metrics), pd.DataFrame(per_unit))


BLACK, WHITE = ["Latoya", "Hakim", "Jamal"], ["Emily", "Brett", "Jake", "Anne"]


def make_name_run(
    black: list[float], white: list[float], **other_groups: dict[str, float]
) -> RunFrames:
    """Return a run of two groups with different names."""
    groups = {
        "race=black": dict(zip(BLACK, black, strict=True)),
        "race=white": dict(zip(WHITE, white, strict=True)),
    }
    return make_run("x", {**groups, **other_groups})


def test_changes_of_groups_with_different_units_are_compared_by_welch() -> None:
    before = make_name_run([1.0, 1.5, 2.0], [2.5, 3.0, 2.5, 4.0])
    after = make_name_run([2.0, 2.0, 2.0], [2.0, 3.0, 2.0, 3.0])
    table = compare_gaps(pair_runs([before, after]))
    assert list(table.columns) == list(COLUMNS)
    (row,) = table.to_dict("records")
    assert row["group"] == "race=black - race=white"
    # 1.5 - 3, 2 - 2.5 and their difference
    assert (row["value_a"], row["value_b"], row["difference"]) == (-1.5, -0.5, 1.0)
    expected = stats.ttest_ind([1.0, 0.5, 0.0], [-0.5, 0.0, -0.5, -1.0], equal_var=False)
    assert (row["n"], row["p"]) == (7, pytest.approx(expected.pvalue, rel=1e-10))
    interval = expected.confidence_interval()
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([interval.low, interval.high])
    assert row["p_adjusted"] == row["p"]


def test_groups_that_share_templates_are_compared_by_a_paired_test() -> None:
    before = make_run(
        "a", {"place=bar": {"t1": 3, "t2": 2, "t3": 4}, "place=zoo": {"t1": 1, "t2": 1, "t3": 1}}
    )
    after = make_run(
        "b", {"place=bar": {"t1": 2, "t2": 2, "t3": 1}, "place=zoo": {"t1": 2, "t2": 1, "t3": 1}}
    )
    (row,) = compare_gaps(pair_runs([before, after])).to_dict("records")
    # gaps of the templates: 2, 1, 3 before; 0, 1, 0 after
    expected = stats.ttest_rel([0, 1, 0], [2, 1, 3])
    assert (row["n"], row["p"]) == (3, pytest.approx(expected.pvalue, rel=1e-10))
    assert row["difference"] == pytest.approx(1 / 3 - 2)
    interval = expected.confidence_interval()
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([interval.low, interval.high])


@pytest.mark.parametrize("condition", ["age < 25", "age >= 25", "age == 25", "age in [25]"])
def test_groups_of_a_condition_are_compared(condition: str) -> None:
    groups = {condition: {"u1": 1.0, "u2": 2.0}, f"not {condition}": {"u3": 3.0, "u4": 5.0}}
    changed = {condition: {"u1": 2.0, "u2": 2.0}, f"not {condition}": {"u3": 3.0, "u4": 4.0}}
    (row,) = compare_gaps(pair_runs([make_run("a", groups), make_run("b", changed)])).to_dict(
        "records"
    )
    # gaps 1.5 - 4 and 2 - 3.5; changes 1, 0 and 0, -1
    assert row["group"] == f"{condition} - not {condition}"
    assert (row["value_a"], row["value_b"], row["difference"]) == (-2.5, -1.5, 1.0)
    expected = stats.ttest_ind([1.0, 0.0], [0.0, -1.0], equal_var=False).pvalue
    assert row["p"] == pytest.approx(expected)


def test_a_gap_is_that_of_the_shared_units() -> None:
    # Anne is in the first run only: without her white has 2.5, 3, 2.5 before
    entry = {"name": "M", "parameters": {"by": "race", "gap": "groups"}, "metric": "M"}
    gap = {**entry, "metric": "M gap", "parameters": {"by": "race", "gap": "difference"}}
    runs = [
        make_name_run([1.0, 1.5, 2.0], [2.5, 3.0, 2.5, 4.0]),
        make_run(
            "y",
            {
                "race=black": dict(zip(BLACK, [2.0, 2.0, 1.0], strict=True)),
                "race=white": {"Jake": 2.0, "Emily": 2.0, "Brett": 3.5},
            },
        ),
    ]
    runs = [
        replace(
            run,
            metrics=pd.concat(
                [run.metrics, run.metrics[:1].assign(metric="M gap", group="", value=value)]
            ),
            manifest={"metrics": [entry, gap]},
        )
        for run, value in zip(runs, (1.5, 2.5 - 5 / 3), strict=True)
    ]
    (row,) = compare_runs(pair_runs(runs)).query("metric == 'M gap'").to_dict("records")
    assert (row["value_a"], row["value_b"]) == pytest.approx((8 / 3 - 1.5, 2.5 - 5 / 3))
    (row,) = compare_gaps(pair_runs(runs)).to_dict("records")
    assert row["difference"] == pytest.approx((5 / 3 - 2.5) - (1.5 - 8 / 3))
    assert (row["n"], row["only_a"], row["only_b"]) == (6, 1, 0)
    test = stats.ttest_ind([1.0, 0.5, -1.0], [-0.5, 0.5, -0.5], equal_var=False)
    assert row["p"] == pytest.approx(test.pvalue)


def test_a_change_that_is_constant_within_groups_has_the_p_of_their_labels() -> None:
    before, after = make_name_run([1.0] * 3, [3.0] * 4), make_name_run([2.0] * 3, [2.0] * 4)
    (row,) = compare_gaps(pair_runs([before, after])).to_dict("records")
    assert row["difference"] == 2
    assert row["p"] == pytest.approx(1 / 35)  # divisions of 7 names into 3 and 4


def test_the_gap_of_three_groups_is_tested_over_the_units_of_both_runs() -> None:
    """The gap rises from 2 to 4; each unit changes by 2 in the highest group, give or take 0.1."""
    entry = {"name": "M", "parameters": {"by": "age", "gap": "groups"}, "metric": "M"}
    gap = {**entry, "metric": "M gap", "parameters": {"by": "age", "gap": "difference"}}
    runs = []
    for label, top in (("a", 2.0), ("b", 4.0)):
        groups = {
            f"age={age}": {
                f"u{age}-{unit}": mean + 0.3 * unit + (0.1 if (unit % 2) == (label == "a") else 0)
                for unit in range(8)
            }
            for age, mean in ((18, 0.0), (25, 1.0), (50, top))
        }
        run = make_run(label, groups)
        row = {**KEYS, "metric": "M gap", "group": "", "value": top}
        metrics = pd.concat([run.metrics, pd.DataFrame([row])], ignore_index=True)
        runs.append(replace(run, metrics=metrics, manifest={"metrics": [entry, gap]}))
    table = compare_runs(pair_runs(runs))
    (change,) = table[table["metric"] == "M gap"].to_dict("records")
    assert (change["test"], change["n"], change["difference"]) == ("gap_change", 24, 2.0)
    assert 1.5 < change["ci_low"] < 2.0 < change["ci_high"] < 2.5
    assert change["p"] < 1e-3


def test_values_of_all_queries_are_not_compared_where_the_queries_differ() -> None:
    """The later run asks u1, u2 and u4 only: neither a coverage nor a gap without its groups."""
    values = {"u1": 0.0, "u2": 2.0, "u3": 4.0, "u4": 1.0}
    entries = [{"metric": name, "k": 5, "name": name, "needs": ["lists"]} for name in "MC"]
    entries.append(
        {**entries[0], "metric": "M gap", "parameters": {"by": "sex", "gap": "difference"}}
    )
    runs = []
    for label, users in (("a", "u1 u2 u3 u4"), ("b", "u1 u2 u4")):
        whole = make_run(label, {"": {user: values[user] for user in users.split()}})
        own = [whole.metrics.assign(metric=metric, value=1.0) for metric in ("M gap", "C")]
        evaluated = [{"dataset": "d", "seed": 1, "fold": 1, "queries": users, "test": ""}]
        manifest = {"metrics": entries, "evaluated": evaluated}
        metrics = pd.concat([whole.metrics, *own])
        runs.append(RunFrames(label, metrics, whole.per_unit, manifest=manifest))
    table = compare_runs(pair_runs(runs)).set_index("metric")
    assert table["difference"].isna().to_dict() == {"M": False, "M gap": True, "C": True}
    assert (table.loc["M", "value_a"], table.loc["M", "value_b"]) == (1.0, 1.0)


def test_groups_stand_in_the_order_of_the_file() -> None:
    """The samples of a simultaneous test depend on the order, and that of a set on the process."""
    groups = {f"age={age}": {f"u{age}": float(age)} for age in range(20)}
    (pair,) = pair_runs([make_run("a", groups), make_run("b", groups)])
    assert [key[6] for key in pair.units] == [*groups]
