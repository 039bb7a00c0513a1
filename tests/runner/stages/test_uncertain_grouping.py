from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.config.specs import Grouping
from recbias.core.context import collect_warnings
from recbias.core.dataset import Attributes, Queries, Vocabulary
from recbias.core.errors import Contradiction, UnknownName, UserError
from recbias.core.measures import Measurement, UnitScores
from recbias.runner.grouping import GroupMeasurements, form_groups
from recbias.statistics.uncertain import TEST

BY = "probability of p_female"
SPEC: dict[str, Any] = {
    "name": "uncertain",
    "dataset": {"name": "tables", "interactions": "clicks.csv", "users": "users.csv"},
    "split": {"name": "random", "test": 0.3},
    "k": 5,
    "models": ["MostPop", "Random"],
    "metrics": [
        {"name": "nDCG", "by": BY},
        {"name": "nDCG", "by": "gender", "gap": "groups"},
        {"name": "nDCG", "by": "probability of certain", "gap": "groups"},
        {"name": "HR", "by": "weight of p_a + p_b + p_c", "reference_group": "p_b"},
    ],
    "tests": ["paired_t"],
    "checks": [{"metric": "nDCG", "by": BY, "gap": "difference", "at_most": 0.9}],
}


def write_people(folder: Path, **columns: Any) -> None:
    """Write 80 users with probabilities, and their interactions with 30 items."""
    rng = np.random.default_rng(2)
    p, female = rng.beta(0.5, 0.5, 80).round(3), rng.random(80) < 0.5
    shares = rng.dirichlet([1.0, 1.0, 1.0], 80).round(2)
    shares[:, 2] = 1.0 - shares[:, 0] - shares[:, 1]
    users = pd.DataFrame({"user_id": [f"u{n}" for n in range(80)], "p_female": p})
    users["gender"] = np.where(female, "F", "M")
    users["certain"] = female.astype(int)
    users[["p_a", "p_b", "p_c"]] = shares.clip(0.0, 1.0)
    users.assign(**columns).to_csv(folder / "users.csv", index=False)
    rows = {(user, int(item)) for user in range(80) for item in rng.zipf(1.3, 25) % 30}
    clicks = pd.DataFrame(sorted(rows), columns=["user_id", "item_id"])
    clicks.assign(user_id=[f"u{user}" for user in clicks["user_id"]]).to_csv(
        folder / "clicks.csv", index=False
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path)
    return tmp_path


def test_a_run_reports_groups_known_as_probabilities(folder: Path) -> None:
    run = recbias.run(SPEC, out=folder / "results")
    metrics = run.metrics[run.metrics["model"] == "Random"]
    means = metrics[metrics["metric"] == f"nDCG(by={BY})"].set_index("group")["value"]
    assert [*means.index] == ["p_female", "not p_female"]
    gap = metrics[metrics["metric"] == f"nDCG(by={BY}, gap=difference)"].iloc[0]
    assert gap["value"] == pytest.approx(abs(means.iloc[0] - means.iloc[1]))
    assert gap["ci_low"] <= gap["value"] <= gap["ci_high"]
    assert run.per_unit is not None
    units = run.per_unit[run.per_unit["group"] == "p_female"]
    assert units[units["model"] == "Random"]["value"].mean() == pytest.approx(means["p_female"])
    tests = run.significance[run.significance["between"] == "groups"]
    test = tests[(tests["metric"] == f"nDCG(by={BY})") & (tests["model"] == "Random")].iloc[0]
    assert (test["test"], test["n"]) == (TEST, 80)
    pairs = tests[tests["metric"].str.startswith("HR(by=weight")][["a", "b"]].drop_duplicates()
    assert pairs.to_numpy().tolist() == [["p_a", "p_b"], ["p_c", "p_b"]]
    (check, *_) = run.manifest["checks"]
    assert check["verdict"] == "pass"
    report = (run.folder / "report.md").read_text(encoding="utf-8")
    assert "groups known as probabilities" in report
    power = recbias.power(run, 0.1)
    row = power[(power["test"] == TEST) & (power["model"] == "Random")].iloc[0]
    assert row["needed"] == pytest.approx(80 * (row["detectable"] / 0.1) ** 2, rel=0.05)


def test_groups_over_folds_are_tested_by_their_mean_contributions(folder: Path) -> None:
    spec = SPEC | {"split": {"name": "random", "test": 0.3, "folds": 2}, "checks": []}
    run = recbias.run(spec, out=folder / "results")
    groups = pd.read_csv(run.folder / "groups.csv")
    rows = groups[(groups["model"] == "Random") & (groups["metric"] == f"nDCG(by={BY})")]
    assert rows["fold"].unique().tolist() == ["all"]
    tests = run.significance
    pooled = tests[(tests["test"] == TEST) & (tests["fold"].astype(str) == "all")]
    row = pooled[(pooled["model"] == "Random") & (pooled["metric"] == f"nDCG(by={BY})")].iloc[0]
    means = rows.set_index("group")["value"]
    assert row["difference"] == pytest.approx(means["p_female"] - means["not p_female"])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"gap": "atkinson"}, "gap: atkinson needs the group of each query"),
        ({"min_group": 5}, "min_group: min_group needs the group of each query"),
        ({"by": "probability of a & b"}, "by: 'probability of a & b' crosses probabilities"),
    ],
)
def test_settings_that_need_known_groups_are_refused(
    folder: Path, setting: dict[str, Any], message: str
) -> None:
    metric = {"name": "nDCG", "by": BY, "gap": "groups"} | setting
    spec = SPEC | {"metrics": [metric], "checks": []}
    with pytest.raises(UserError) as caught:
        recbias.run(spec, out=folder / "results")
    assert f"metrics[0].{message}" in str(caught.value)


def make_queries(p: list[float | None]) -> Queries:
    ids = Vocabulary.of([f"u{row}" for row in range(len(p))])
    labels = Attributes(ids, pd.DataFrame({"p": p, "q": p, "r": p}), "user")
    return Queries(ids, labels, np.arange(len(p), dtype=np.int32))


def test_missing_and_nearly_equal_probabilities_are_warned_of() -> None:
    queries = make_queries([0.52, 0.48, None, 0.52, 0.48, 0.5, 0.5])
    units = UnitScores("user", queries.ids.ids, np.linspace(0.1, 0.7, 7))
    measure = GroupMeasurements("nDCG", Grouping("probability of p", "groups"))
    with collect_warnings() as warnings:
        measure(queries, [Measurement.from_units(units)])
    # variance 4 · 0.0004 / 6 of 0.25: 0.107%, 1 / √0.00107 = 30.6
    assert warnings == [
        "nDCG: 1 queries have no label 'probability of p'",
        (
            "nDCG: p tells 0.1% of the variance of its label, so the interval is about 30.6 times "
            "as wide as with certain labels"
        ),
    ]


def test_an_unknown_reference_group_and_ugf_of_three_are_refused() -> None:
    queries = make_queries([0.9, 0.8, 0.2, 0.1])
    with pytest.raises(UnknownName) as unknown:
        form_groups(queries, Grouping("probability of p", reference_group="q"))
    assert unknown.value.where == "reference_group"
    columns = {name: [0.2, 0.3, 0.4, 0.5, 0.3] * 4 for name in "ab"}
    columns["b"] = columns["b"][1:] + columns["b"][:1]
    columns["c"] = [1.0 - a - b for a, b in zip(columns["a"], columns["b"], strict=True)]
    ids = Vocabulary.of([f"u{row}" for row in range(20)])
    labels = Attributes(ids, pd.DataFrame(columns), "user")
    thirds = Queries(ids, labels, np.arange(20, dtype=np.int32))
    with pytest.raises(Contradiction, match="ugf compares two groups") as several:
        form_groups(thirds, Grouping("probability of a + b + c", "ugf"))
    assert several.value.where == "gap"
