"""Metrics of labels that people checked for some of the items: values, gaps, tests, checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import recbias
from recbias.data.demo import Demo
from recbias.runner.stages import LoadDataset
from recbias.runs.power import count_labels

LABEL = "ngim.gender"
CORRECTED = f"REC-ST(label={LABEL}, corrected=True)"
DEMO: dict[str, Any] = {"n_users": 200, "n_items": 150, "misleading": 0.2}


def run(folder: Path, share: float = 0.5, **keys: Any) -> Any:
    """Run with the labels of casts, of which some mislead, and the truth of some of the items."""
    dataset = LoadDataset(Demo(**DEMO), (), folder, 42)()
    assert dataset.items is not None
    truth = pd.DataFrame(
        {"item_id": dataset.items.ids.ids, "gender": dataset.items.frame["stereotype"]}
    )
    rows = truth.sample(frac=share, random_state=1)
    rows.assign(gender=rows["gender"].astype(int)).to_csv(folder / "labels.csv", index=False)
    spec = {
        "name": "audited",
        "dataset": {"name": "demo", **DEMO},
        "split": {"name": "random", "test": 0.2},
        "models": ["ItemKNN", "PureSVD"],
        "labels": [
            {"name": "ngim", "detector": "names", "from": "cast", "audited": "labels.csv"},
            {"name": "truth", "detector": "column", "from": "stereotype", "kind": "gender"},
        ],
        "metrics": [
            {"name": "REC-ST", "label": label, **by}
            for label in (LABEL, "truth.gender")
            for by in ({}, {"by": "gender"})
        ],
        "tests": ["paired_t"],
        "report": {"formats": ["csv", "json", "md"]},
        **keys,
    }
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return recbias.run(path, out=folder / "results", progress=False)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Any:
    check = {"metric": CORRECTED, "by": "gender", "gap": "difference", "at_most": 0.3}
    return run(tmp_path_factory.mktemp("audited"), checks=[check])


def select(metrics: pd.DataFrame, metric: str) -> Any:
    return metrics[metrics["metric"] == metric].set_index("model")


def test_the_corrected_value_is_nearer_to_the_truth_and_its_interval_holds_it(
    audited: Any,
) -> None:
    raw, corrected, truth = (
        select(audited.metrics, name)
        for name in (f"REC-ST(label={LABEL})", CORRECTED, "REC-ST(label=truth.gender)")
    )
    assert ((corrected["ci_low"] < truth["value"]) & (truth["value"] < corrected["ci_high"])).all()
    error = (corrected["value"] - truth["value"]).abs()
    assert (error < (raw["value"] - truth["value"]).abs()).all()
    assert (corrected["ci_high"] - corrected["ci_low"] > raw["ci_high"] - raw["ci_low"]).all()


def test_groups_gap_test_and_check_are_of_the_corrected_values(audited: Any) -> None:
    by = CORRECTED.replace(")", ", by=gender")
    groups = audited.metrics[audited.metrics["metric"] == f"{by})"]
    gap = select(audited.metrics, f"{by}, gap=difference)")
    tests = audited.significance
    tests = tests[(tests["metric"] == f"{by})") & (tests["between"] == "groups")].set_index(
        "model"
    )
    (checks,) = [audited.checks.set_index("model")]
    assert set(tests["test"]) == {"prediction_powered"}
    for model, row in gap.iterrows():
        values = groups[groups["model"] == model]["value"]
        assert row["value"] == pytest.approx(np.ptp(values))
        assert row["value"] == pytest.approx(abs(tests.loc[model, "difference"]))
        assert checks.loc[model, "value"] == row["value"]
        assert checks.loc[model, "ci_high"] == row["ci_high"]
        overall = select(audited.metrics, CORRECTED).loc[model]
        sizes = groups[groups["model"] == model]["n"]
        assert overall["value"] == pytest.approx(np.average(values, weights=sizes))


def test_models_are_compared_with_the_errors_of_the_labels(audited: Any) -> None:
    tests = audited.significance.set_index("metric")
    raw, corrected = tests.loc[f"REC-ST(label={LABEL})"], tests.loc[CORRECTED]
    values = select(audited.metrics, CORRECTED)["value"]
    assert corrected["difference"] == pytest.approx(
        values[corrected["a"]] - values[corrected["b"]]
    )
    assert corrected["ci_high"] - corrected["ci_low"] > raw["ci_high"] - raw["ci_low"]


def test_several_seeds(tmp_path: Path) -> None:
    """Each user is one user over the seeds, and the audited items are those of both."""
    found = run(tmp_path, seeds=[42, 43], dataset={"name": "demo", **DEMO, "misleading": 0.0})
    rows = found.metrics[found.metrics["metric"] == CORRECTED]
    mean = rows[rows["seed"] == "all"].set_index("model")
    single = rows[rows["seed"] != "all"].groupby("model")
    assert mean["value"].to_dict() == pytest.approx(single["value"].mean().to_dict())
    assert (mean["ci_low"] < mean["value"]).all()


def test_a_run_of_the_resolved_spec_is_the_same(audited: Any) -> None:
    again = recbias.plan(audited.folder / "spec.yaml", out=audited.folder.parents[1])
    assert again is not None
    text = (audited.folder / "spec.yaml").read_text(encoding="utf-8")
    assert "ngim.audited" in text
    assert text.count("corrected: true") == 5  # the value, the groups and their gaps


def test_too_small_a_sample_gives_no_value(tmp_path: Path) -> None:
    found = run(tmp_path, share=0.01)
    assert select(found.metrics, CORRECTED)["value"].isna().all()
    text = (found.folder / "manifest.json").read_text(encoding="utf-8")
    assert "fewer than 5: there is no corrected value" in text


def test_power_counts_the_labels_that_a_half_width_needs(audited: Any) -> None:
    """With as many labels as there are, the half width is that of the run."""

    def count(half_width: float) -> Any:
        return count_labels(audited, half_width).set_index(["metric", "model"])

    key = (CORRECTED, "ItemKNN")
    width = count(0.05)["half_width"]
    row, narrower = count(width[key]).loc[key], count(width[key] / 1.3).loc[key]
    assert row["needed"] == row["audited"] < row["items"] <= DEMO["n_items"]
    assert row["needed"] < narrower["needed"] <= row["items"]
    impossible = count_labels(audited, 0.001)
    assert impossible["needed"].isna().all()
    assert impossible["remark"].str.startswith("the users alone give").all()
    assert any("gap=difference" in metric for metric, _ in width.index)
