"""Metrics of exposure in a spec: faults with their place and remedy, and a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.errors import UserError


def make_spec(*metrics: Any) -> dict[str, Any]:
    return {
        "name": "exposure",
        "dataset": {"name": "demo", "n_users": 60, "n_items": 60},
        "split": {"name": "random", "test": 0.3},
        "k": 5,
        "models": ["Random", "MostPop"],
        "metrics": [*metrics],
        "tests": ["paired_t"],
    }


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ({"name": "EE-L", "gamma": 1}, "gamma: must be a number of at least 0 and below 1"),
        ({"name": "AWRF", "attribute": "genres", "target": {"Drama": 0.9}}, "target: .* sum to"),
        ({"name": "AWRF", "attribute": "genre"}, "attribute: the items have no column 'genre'"),
        ({"name": "AWRF", "attribute": "genres", "target": {"Dram": 1}}, "target: .* 'Dram'"),
        ({"name": "EE-D", "samples_of": "person"}, "samples_of: the users have no column"),
        ({"name": "EE-D", "samples_of": "gender", "by": "age"}, "by: EE-D has no value for each"),
        ({"name": "EXP"}, "attribute"),
    ],
)
def test_faults_have_a_place_and_a_remedy(metric: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as error:
        recbias.run(make_spec(metric), out=tmp_path)
    lines = error.value.lines()
    assert lines[0].startswith("error: ")
    assert any(line.startswith("help: ") for line in lines)


def test_groups_of_a_numeric_label_are_named_by_its_numbers(tmp_path: Path) -> None:
    """Detectors give labels of 0 and 1."""
    metrics = [
        {"name": "AWRF", "attribute": "stereotype", "target": {1: 0.5, 0: 0.5}, "label": "shares"},
        {"name": "AWRF", "attribute": "stereotype", "target": "equal", "label": "equal"},
        {"name": "exposure_gap", "attribute": "stereotype", "target": "equal"},
        {"name": "EXP", "attribute": "stereotype"},
    ]
    run = recbias.run(make_spec(*metrics), out=tmp_path)
    values = run.metrics.set_index(["model", "metric", "target"])["value"]
    for model in ("Random", "MostPop"):
        equal, shares = (values[model, name, ""] for name in ("equal", "shares"))
        assert shares == pytest.approx(equal, abs=1e-12)
    assert {"stereotype=0", "stereotype=1"} < {*run.metrics["target"]}
    tested = run.significance.groupby("metric")["test"].agg(set).to_dict()
    assert "paired_t" in tested["equal"]
    assert [tests for name, tests in tested.items() if str(name).startswith("EXP(")] == [
        {"paired_bootstrap"}
    ]


@pytest.mark.parametrize(
    ("models", "metric", "remedy"),
    [
        (["MostPop"], {"name": "EXP", "attribute": "p_minor"}, "weight of p_minor if they are"),
        (["MostPop"], {"name": "provider_gap", "attribute": "p_minor"}, "weight of p_minor if"),
        (
            [{"name": "MostPop", "rerank": {"name": "DetGreedy", "attribute": "p_minor"}}],
            "nDCG",
            "make labels of it",
        ),
    ],
)
def test_a_column_of_probabilities_is_not_read_as_a_group_for_each_number(
    models: list[Any], metric: Any, remedy: str, tmp_path: Path
) -> None:
    # each of 20 items would be a group of its own, whose least exposure is 0
    users, items = [f"u{number}" for number in range(8)], [f"i{number}" for number in range(20)]
    pairs = [(user, item) for user in users for item in items[int(user[1]) : int(user[1]) + 12]]
    (tmp_path / "clicks.csv").write_text(
        "user_id,item_id\n" + "".join(f"{user},{item}\n" for user, item in pairs), "utf-8"
    )
    rows = [f"{item},{number / 20 + 0.01}\n" for number, item in enumerate(items)]
    (tmp_path / "items.csv").write_text("item_id,p_minor\n" + "".join(rows), "utf-8")
    tables = {name: str(tmp_path / f"{name}.csv") for name in ("clicks", "items")}
    dataset = {"name": "tables", "interactions": tables["clicks"], "items": tables["items"]}
    spec = make_spec(metric) | {"dataset": dataset, "models": models}
    with pytest.raises(UserError, match="'p_minor' holds numbers that are no categories") as error:
        recbias.run(spec, out=tmp_path / "results")
    assert remedy in "\n".join(error.value.lines())
