from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias import api
from recbias.config.specs import Gap, Grouping
from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Queries, Vocabulary
from recbias.core.errors import BrokenContract, Contradiction, NothingLeft, UserError
from recbias.core.measures import Measurement, UnitScores
from recbias.runner.grouping import GroupMeasurements, form_groups
from recbias.runner.plan import ModelPlan

SPEC: dict[str, Any] = {
    "name": "split",
    "dataset": {"name": "demo", "n_users": 60, "n_items": 60, "per_user": 12},
    "split": {"name": "random", "test": 0.2},
    "models": ["MostPop"],
}


def make_queries(labels: list[str | None]) -> Queries:
    ids = Vocabulary.of([f"u{user}" for user in range(len(labels))])
    table = Attributes(ids, pd.DataFrame({"g": labels}), "user")
    return Queries(ids, table, np.arange(len(labels), dtype=np.int32))


def group(
    labels: list[str | None], values: list[float], gap: Gap, *, share: bool = False
) -> tuple[tuple[Measurement, ...], list[str]]:
    """Return the measurements by group, and the warnings."""
    queries = make_queries(labels)
    units = UnitScores("user", queries.ids.ids, np.array(values), share)
    with collect_warnings() as warnings:
        measurements = GroupMeasurements("nDCG", Grouping("g", gap))(
            queries, [Measurement.from_units(units)]
        )
    return measurements, warnings


def test_values_are_grouped_and_queries_without_a_label_are_counted() -> None:
    measurements, warnings = group(["a", "a", "b", None], [0.2, 0.4, 0.9, 1.0], "groups")
    # a: (0.2 + 0.4) / 2, b: 0.9 of one query; the last has no label
    assert [(row.group, row.n) for row in measurements] == [("g=a", 2), ("g=b", 1)]
    assert measurements[0].value == pytest.approx(0.3)
    assert warnings == [
        "nDCG: 1 queries have no label 'g'",
        (
            "nDCG: g=b has only one query: no interval, and it is left out of tests but counts in "
            "gaps; min_group: 2 removes it from both"
        ),
    ]


@pytest.mark.parametrize("gap", ["groups", "difference", "atkinson"])
def test_groups_without_a_value_are_said_to_make_gaps_undefined(gap: Gap) -> None:
    labels, nan = [*"aabbccdd"], math.nan
    rows, warnings = group([*labels], [0.2, 0.4, 0.9, 1.0, nan, nan, 0.5, nan], gap)
    if gap != "groups":
        assert math.isnan(rows[0].value)
    (warning,) = warnings
    assert warning == (
        "nDCG: no query of g=c has a value, so no gap is defined; min_group: 1 leaves such groups "
        "out"
    )
    _, (warning,) = group([*labels], [0.2, 0.4, nan, nan, nan, nan, 0.5, 0.5], gap)
    assert warning.startswith("nDCG: no query of 2 groups, such as g=b, has a value")


@pytest.mark.parametrize("gap", ["groups", "difference"])
def test_several_groups_of_one_query_are_one_warning(gap: Gap) -> None:
    _, warnings = group(["a", "b"], [0.2, 0.4], gap)
    (warning,) = warnings
    assert warning == (
        "nDCG: 2 groups, such as g=a, have only one query: no interval, and they are left out of "
        "tests but count in gaps; min_group: 2 removes them from both"
    )


def test_too_many_pairs_are_said_to_be_untested_with_a_remedy() -> None:
    labels: list[str | None] = [f"g{n}" for n in range(33) for _ in range(2)]
    _, warnings = group(labels, [0.1, 0.3] * 33, "groups")
    (warning,) = warnings
    assert warning == (  # 33 * 32 / 2 = 528
        "nDCG: the 528 pairs of groups are not tested, because they are more than 500; set "
        "min_group or reference_group, or group by conditions such as 'age < 25'"
    )
    _, warnings = group(labels[:64], [0.1, 0.3] * 32, "groups")
    assert warnings == []  # 32 * 31 / 2 = 496


def test_a_column_of_probabilities_as_a_label_has_their_form_as_remedy() -> None:
    labels: list[str | None] = [f"{n / 40}" for n in range(33) for _ in range(2)]
    _, warnings = group(labels, [0.1, 0.3] * 33, "groups")
    assert warnings[0].endswith("if these are probabilities, write by: probability of g")


def test_a_metric_without_a_value_per_query_is_refused() -> None:
    group_gini = GroupMeasurements("Gini", Grouping("g", "groups"))
    queries = make_queries(["a", "a", "b", "b"])
    with pytest.raises(BrokenContract, match="no value for each query"):
        group_gini(queries, [Measurement(1.0, 1, 0)])


def test_one_group_is_refused() -> None:
    with pytest.raises(NothingLeft, match="one group, g=a"):
        form_groups(make_queries(["a", "a", None]), Grouping("g"))


def count_measures(plan: ModelPlan) -> int:
    return sum(stage.kind == "measure" for stage in plan.stages)


def test_a_metric_is_computed_once_for_all_its_groups_and_gaps(tmp_path: Path) -> None:
    spec = SPEC | {"metrics": ["nDCG", {"name": "nDCG", "by": "gender"}]}
    (plan,) = api.plan(spec, out=tmp_path)[0].model_plans
    assert len(plan.measures) == 5  # nDCG itself, the groups and three gaps
    assert count_measures(plan) == 5  # and no second nDCG
    grouped_only = SPEC | {"metrics": [{"name": "nDCG", "by": "gender"}]}
    (plan,) = api.plan(grouped_only, out=tmp_path)[0].model_plans
    assert (len(plan.measures), count_measures(plan)) == (4, 5)


def write_people(folder: Path) -> None:
    """Write 60 users, of whom 30 are F, 26 M, 4 X; some labels are written in other ways."""
    genders = [*["F"] * 28, " F", "f", *["M"] * 26, *["X"] * 4]
    languages = ["en", "de", "en|de"]
    rows = [f"{n},{g},{15 + n},{languages[n % 3]}\n" for n, g in enumerate(genders)]
    rows[7] = rows[7].replace(",22,", ",unknown,")
    (folder / "people.csv").write_text("customer,gender,age,lang\n" + "".join(rows))
    clicks = [f"{user},{(user * 7 + n * n) % 40}\n" for user in range(60) for n in range(9)]
    (folder / "clicks.csv").write_text("customer,sku\n" + "".join(dict.fromkeys(clicks)))


PEOPLE: dict[str, Any] = SPEC | {
    "name": "people",
    "dataset": {
        "name": "tables",
        "interactions": "clicks.csv",
        "users": "people.csv",
        "columns": {"customer": "user_id", "sku": "item_id"},
        "missing": ["unknown"],
        "clean": {"trim": True, "case": "most_common"},
    },
    "metrics": [
        {"name": "nDCG", "by": "gender", "min_group": 20},
        {"name": "HR", "by": "lang"},
        {"name": "MRR", "by": "gender", "reference_group": "M", "gap": "groups"},
        {"name": "Recall", "by": "age < 25", "gap": "groups"},
        {"name": "HR", "by": "age in [20, 25, 30]", "gap": "groups", "pairs": [["30+", "20-24"]]},
    ],
}


def test_groups_of_a_users_own_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path)
    run = recbias.run(PEOPLE, out=tmp_path / "results")
    sizes = run.metrics[run.metrics["metric"] == "nDCG(by=gender)"].set_index("group")["n"]
    assert sizes.to_dict() == {"gender=F": 30, "gender=M": 26, "gender=X": 4}
    columns = run.significance[["metric", "a", "b", "test"]]
    assert columns.to_numpy().tolist()[:4] == [
        ["nDCG(by=gender)", "gender=F", "gender=M", "welch_t"],
        ["HR(by=lang)", "lang=de", "lang=en", "overlap_t"],
        ["MRR(by=gender)", "gender=F", "gender=M", "welch_t"],
        ["MRR(by=gender)", "gender=X", "gender=M", "welch_t"],
    ]
    bins = columns[columns["metric"] == "HR(by=age in [20, 25, 30])"]
    assert bins[["a", "b"]].to_numpy().tolist() == [["age=30+", "age=20-24"]]
    gap = run.metrics.set_index("metric")["value"]["nDCG(by=gender, gap=difference, min_group=20)"]
    means = run.metrics[run.metrics["metric"] == "nDCG(by=gender)"].set_index("group")["value"]
    assert gap == pytest.approx(abs(means["gender=F"] - means["gender=M"]))
    warnings = "\n".join(str(warning) for warning in run.manifest["warnings"])
    assert "fewer than 20 queries and are shown, but not compared: gender=X (4)" in warnings
    assert "20 queries have several values of 'lang' and count in each group" in warnings


@pytest.mark.parametrize(
    ("grouping", "key", "message"),
    [
        ({"min_group": 99}, "min_group", "fewer than two groups of 'gender' have 99 queries"),
        ({"reference_group": "W"}, "reference_group", "no group of 'gender' is called 'W'"),
        (
            {"min_group": 9, "reference_group": "X"},
            "reference_group",
            "gender=X has 4 queries, fewer than min_group: 9",
        ),
        ({"pairs": [["M", "W"]]}, "pairs", "no group of 'gender' is called 'W'"),
        ({"pairs": [["M", "gender=M"]]}, "pairs", "'M' is paired with itself"),
    ],
)
def test_groups_that_cannot_be_compared_are_refused_before_training(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    grouping: dict[str, Any],
    key: str,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path)
    spec = PEOPLE | {"metrics": [{"name": "nDCG", "by": "gender", **grouping}]}
    with pytest.raises(UserError) as error:
        recbias.run(spec, out=tmp_path / "results")
    assert f"metrics[0].{key}: {message}" in str(error.value)


@pytest.mark.parametrize(
    ("gaps", "tested"),
    [
        (["difference"], "nDCG(by=gender, gap=difference)"),
        (["difference", "groups"], "nDCG(by=gender)"),
    ],
)
def test_two_groups_are_tested_once_also_by_their_gap_alone(
    tmp_path: Path, gaps: list[str], tested: str
) -> None:
    metrics = [{"name": "nDCG", "by": "gender", "gap": gap} for gap in gaps]
    run = recbias.run({**SPEC, "metrics": metrics}, out=tmp_path)
    rows = run.significance
    assert rows["metric"].tolist() == [tested]
    assert rows["test"].tolist() == ["welch_t"]
    assert rows["family_size"].tolist() == [1]


def test_few_values_beside_many_are_warned_of() -> None:
    labels, values = [*"aaaaa", *"b" * 25], [*np.arange(30) / 30.0]
    (_, warnings) = group(labels, values, "difference")
    message = "1 group(s) have fewer than 20 values beside 5 times as many; if values are skewed, "
    reason = "fewer than 93 of 100 intervals of the gap hold the truth"
    assert warnings == [f"nDCG: {message}{reason}: g=a (5)"]


def test_ugf_of_three_groups_is_refused() -> None:
    queries = make_queries(["a", "b", "c"])
    with pytest.raises(Contradiction, match="ugf compares two groups, and 'g' has 3") as caught:
        form_groups(queries, Grouping("g", "ugf"))
    assert caught.value.where == "gap"
    assert "gap: mad" in caught.value.remedy


def test_a_text_cell_in_a_numeric_condition_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path)
    dataset = {key: value for key, value in PEOPLE["dataset"].items() if key != "missing"}
    with pytest.raises(UserError, match=r"1 of 60 cells of age are not numbers: 'unknown' \(1\)"):
        recbias.run(PEOPLE | {"dataset": dataset}, out=tmp_path / "results")
