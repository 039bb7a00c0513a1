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
