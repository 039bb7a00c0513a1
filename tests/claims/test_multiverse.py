"""Claims in every defensible setting: universes, their values, faults, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import recbias
from recbias.core.errors import Faults
from support.commands import invoke_recbias

CLAIM = {"metric": "nDCG", "by": "gender", "model": "ItemKNN", "against": "MostPop"}


def make_spec(claim: dict[str, Any] | None = None, **choices: Any) -> dict[str, Any]:
    return {
        "name": "small",
        "dataset": {"name": "demo", "n_users": 120, "n_items": 60},
        "split": {"name": "random", "test": 0.2},
        "models": ["MostPop", {"name": "ItemKNN", "neighbors": 20}, "EASE"],
        "metrics": ["HR", {"name": "nDCG", "by": "gender", "gap": "difference"}],
        "claim": {**CLAIM, "direction": "higher", **(claim or {})},
        "multiverse": choices or {"k": [5, 10], "models.ItemKNN.neighbors": [10, 20]},
    }


def test_a_universe_has_the_estimate_of_its_run(tmp_path: Path) -> None:
    spec = make_spec(k=[5, 10], metric=["nDCG", "HR"])
    result = recbias.multiverse(spec, out=tmp_path, progress=False)
    plain = {key: value for key, value in spec.items() if key not in {"claim", "multiverse"}}
    metrics = recbias.run({**plain, "k": 10}, out=tmp_path, progress=False).metrics
    gaps = metrics[metrics["metric"].str.contains("nDCG") & (metrics["group"] == "")]
    gap = gaps[gaps["metric"].str.contains("gap")].set_index("model")["value"]
    universe = result.universes.query("k == '10' and metric == 'nDCG'").iloc[0]
    assert universe["estimate"] == pytest.approx(gap["ItemKNN"] - gap["MostPop"], abs=1e-12)
    assert len(result.universes) == result.summary["universes"] == 4
    assert {"k", "metric"} <= {*result.choices["choice"]}
    assert "specification-curve" in (result.folder / "report.md").read_text(encoding="utf-8")
    again = recbias.multiverse(spec, out=tmp_path, progress=False)
    assert again.folder == result.folder
    assert again.universes.equals(result.universes)


def test_a_universe_that_fails_is_counted(tmp_path: Path) -> None:
    spec = make_spec(filters=[[], [{"name": "k_core", "k": 1000}]], seed=[1, 2])
    result = recbias.multiverse(spec, out=tmp_path, progress=False)
    assert result.universes["verdict"].eq("failed").sum() == result.summary["failed"] == 2
    assert result.universes["problem"].iloc[2]
    assert "2 more failed" in result.verdict


def test_a_claim_about_a_value_and_a_sample(tmp_path: Path) -> None:
    claim = {"by": None, "against": None, "than": 0.9, "direction": "lower"}
    spec = make_spec(claim, k=[3, 4, 5, 6], seed=[1, 2, 3], sample=6)
    result = recbias.multiverse(spec, out=tmp_path, progress=False)
    assert (result.universes["verdict"] == "holds").all()
    assert result.universes["k"].value_counts().max() <= 2
    assert result.summary["share_high"] == 1.0
    assert 0.5 < result.summary["share_low"] < 1.0
    assert result.summary["turns"] is None


def test_options_of_other_kinds_are_not_pooled(tmp_path: Path) -> None:
    spec = make_spec({"by": None}, k=[5, 10], seed={"values": [1, 2, 3], "kind": "different"})
    result = recbias.multiverse(spec, out=tmp_path, progress=False)
    assert result.summary["pooled"] == 2
    assert np.isfinite(result.universes["p"]).all()


FAULTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"model": "BPR"}, {"k": [5, 10]}, "no model of the spec is called 'BPR'"),
    ({"metric": 7}, {"k": [5, 10]}, "must be text or a mapping"),
    ({"by": "gendr"}, {"k": [5, 10]}, "no query carries the label 'gendr'"),
    ({"against": None}, {"k": [5, 10]}, "only between groups in order"),
    ({"against": None, "by": None}, {"k": [5]}, "compares with nothing"),
    ({}, {"k": [5, 5]}, "option twice"),
    ({}, {"k": [5, 0]}, "above 0"),
    ({}, {"k": 5}, "must be a list of options"),
    ({}, {"k": {"values": [5], "kind": "same"}}, "unknown kind"),
    ({}, {"models.BPR.factors": [1, 2]}, "without 'BPR'"),
    ({}, {"seed": [*range(1000)], "k": [*range(1, 1001)]}, "1,000,000 combinations"),
    ({"metric": "Gini"}, {"k": [5]}, "no values by unit"),
    ({"groups": ["F", "X"]}, {"k": [5]}, "no group"),
]


@pytest.mark.parametrize(("claim", "choices", "message"), FAULTS)
def test_a_fault_of_every_universe_is_an_error(
    tmp_path: Path, claim: dict[str, Any], choices: dict[str, Any], message: str
) -> None:
    spec = make_spec(claim, **choices)
    with pytest.raises((Faults, recbias.core.errors.RecbiasError), match=message):
        recbias.multiverse(spec, out=tmp_path, progress=False)


def test_the_commands(tmp_path: Path) -> None:
    (tmp_path / "claim.yaml").write_text(json.dumps(make_spec()), encoding="utf-8")
    planned = invoke_recbias("plan", "claim.yaml", folder=tmp_path)
    assert "4 universes" in planned.out
    result = invoke_recbias("run", "claim.yaml", folder=tmp_path)
    assert result.code == 0
    assert result.out.startswith("Holds in ")
    shown = json.loads(invoke_recbias("run", "claim.yaml", "--json", folder=tmp_path).out)
    assert shown["summary"]["universes"] == 4
    planned = invoke_recbias("plan", "claim.yaml", "--json", folder=tmp_path)
    described = json.loads(planned.out)
    assert described["stages"] == described["stages_stored"] < described["stages_unshared"]


def test_offline_the_universes_are_planned_without_the_network(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    address = "hf://datasets/recbias-tests/absent/clicks.csv"
    spec = {**make_spec(k=[5, 10]), "dataset": {"name": "tables", "interactions": address}}
    with pytest.raises(Faults, match="offline it is not asked for"):
        recbias.multiverse(spec, out=tmp_path, progress=False, offline=True)


CLAIM_FAULTS = [
    ({"model": "BPR"}, "claim.model: no model of the spec is called 'BPR'"),
    ({"metric": "MRR"}, "claim.metric: MRR is not among the metrics of the spec"),
    ({"by": "gendr"}, "claim.by: no query carries the label 'gendr'"),
    ({"groups": ["F", "X"]}, "claim.by: no group of 'gender' is called 'X'"),
]


@pytest.mark.parametrize(("claim", "message"), CLAIM_FAULTS)
def test_a_fault_of_a_claim_is_found_by_the_plan(
    tmp_path: Path, claim: dict[str, Any], message: str
) -> None:
    spec = {key: value for key, value in make_spec(claim).items() if key != "multiverse"}
    (tmp_path / "claim.yaml").write_text(json.dumps(spec), encoding="utf-8")
    planned = invoke_recbias("plan", "claim.yaml", folder=tmp_path)
    assert planned.code == 2
    assert message in planned.err


def test_a_run_decides_its_claim_by_the_metric_with_its_cutoff(tmp_path: Path) -> None:
    spec = make_spec({"metric": "nDCG@3", "by": None})
    spec["metrics"] = ["nDCG", "nDCG@3"]
    del spec["multiverse"]
    run = recbias.run(spec, out=tmp_path, progress=False)
    values = run.metrics.set_index(["model", "k"])["value"]
    claim = run.manifest["claim"]
    expected = values["ItemKNN", 3] - values["MostPop", 3]
    assert claim["estimate"] == pytest.approx(expected, abs=1e-12)
    assert claim["verdict"] == "holds"


def test_a_claim_is_corrected_as_the_tests_of_the_run(tmp_path: Path) -> None:
    spec = make_spec({"by": None}, correction=["none", "bonferroni", "holm"])
    result = recbias.multiverse(spec, out=tmp_path, progress=False)
    p = result.universes.set_index("correction")["p"]
    assert p["bonferroni"] == pytest.approx(min(1.0, 3 * p["none"]))
    del spec["multiverse"]
    spec["claim"]["correction"] = "holm"
    tests = [{"name": "paired_t", "correction": "holm"}]
    run = recbias.run({**spec, "metrics": ["nDCG"], "tests": tests}, out=tmp_path, progress=False)
    rows = run.significance
    own = rows[rows["a"].isin(["ItemKNN", "MostPop"]) & rows["b"].isin(["ItemKNN", "MostPop"])]
    assert run.manifest["claim"]["p"] == pytest.approx(own["p_adjusted"].iloc[0])
    assert p["holm"] == pytest.approx(run.manifest["claim"]["p"])


PROMPTS = Path(__file__).parents[2] / "configs" / "prompts.yaml"


def make_prompt_spec(claim: dict[str, Any]) -> dict[str, Any]:
    """Return the packaged audit of given lists, with a claim about the model ``theirs``."""
    spec = yaml.safe_load(PROMPTS.read_text(encoding="utf-8"))
    spec["dataset"]["items"] = str(PROMPTS.parent / spec["dataset"]["items"])
    spec["queries"]["templates"] = str(PROMPTS.parent / spec["queries"]["templates"])
    for model in spec["models"]:
        model["path"] = str(PROMPTS.parent / model["path"])
    return {**spec, "claim": {"model": "theirs", "direction": "higher", **claim}}


def test_a_gap_of_a_metric_that_groups_units_of_its_own(tmp_path: Path) -> None:
    metric = {"name": "mean_attribute", "label": "gender", "attribute": "price"}
    spec = make_prompt_spec({"metric": metric, "by": "gender", "groups": ["male", "female"]})
    result = recbias.multiverse(
        {**spec, "multiverse": {"k": [5, 3]}}, out=tmp_path, progress=False
    )
    run = recbias.run(spec, out=tmp_path, progress=False)
    rows = run.metrics[run.metrics["metric"].str.startswith("mean_attribute")]
    values = rows.query("model == 'theirs'").set_index("group")["value"]
    universe = result.universes.iloc[0]
    assert universe["estimate"] == pytest.approx(
        values["gender=male"] - values["gender=female"], abs=1e-12
    )
    assert universe["n"] == 12  # names, not prompts
    assert run.manifest["claim"]["estimate"] == pytest.approx(universe["estimate"])
    assert result.summary["joint_p"]["mean_z"] < 0.1
    spec["claim"] |= {"by": "age", "groups": ["young", "old"]}  # not what the metric groups by
    run = recbias.run(spec, out=tmp_path, progress=False)
    assert "no values by unit" in run.manifest["claim"]["problem"]


def test_a_claim_about_a_target(tmp_path: Path) -> None:
    metric = {"name": "attribute_share", "attribute": "price"}
    claim = {"metric": metric, "target": "price=$", "than": 0.1}
    spec = make_prompt_spec(claim)
    spec |= {"metrics": [metric], "checks": []}
    run = recbias.run(spec, out=tmp_path, progress=False)
    values = run.metrics.query("model == 'theirs'").set_index("target")["value"]
    estimate = run.manifest["claim"]["estimate"]
    assert estimate == pytest.approx(values["price=$"] - 0.1, abs=1e-12)
    assert "price=$ of theirs" in run.manifest["claim"]["claim"]
    spec["claim"]["target"] = "price=7"
    run = recbias.run(spec, out=tmp_path, progress=False)
    assert "no values by unit for the target 'price=7'" in run.manifest["claim"]["problem"]
