"""The explanation of a gap: parts, worst groups, models that halve it, faults, the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import recbias
from recbias.core.errors import Contradiction, UnknownName, WrongType
from support.commands import invoke_recbias

SPEC = {
    "name": "small",
    "dataset": {"name": "demo", "n_users": 300, "n_items": 80},
    "split": {"name": "random", "test": 0.2},
    "models": ["MostPop", {"name": "ItemKNN", "neighbors": 20}],
    "metrics": ["nDCG", {"name": "nDCG", "by": "gender", "gap": "difference"}],
    "report": {"formats": ["json"]},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> recbias.Run:
    return recbias.run(SPEC, out=tmp_path_factory.mktemp("explain") / "results", progress=False)


def test_the_gap_is_that_of_the_run_and_its_parts_add_up(run: recbias.Run) -> None:
    found = recbias.explain(run, "nDCG by gender", model="ItemKNN", anyway=True)
    row = run.metrics[run.metrics["metric"].str.contains("gap")].set_index("model").loc["ItemKNN"]
    assert found.gap["difference"] == pytest.approx(row["value"], abs=1e-12)
    sums = found.parts.groupby("method")["part"].sum()
    assert sums.to_numpy() == pytest.approx([found.gap["difference"]] * 2, abs=1e-9)
    assert {"log of history length", "share of rare items"} <= {*found.properties["property"]}
    assert {*found.changes["model"]} == {"MostPop", "ItemKNN"}
    means = run.metrics[(run.metrics["metric"] == "nDCG") & (run.metrics["group"] == "")]
    changes = found.changes.set_index("model")["mean"]
    assert changes.to_dict() == pytest.approx(means.set_index("model")["value"].to_dict())


def test_a_gap_that_may_be_chance_is_said_first(run: recbias.Run) -> None:
    found = recbias.explain(run, "nDCG by gender", model="MostPop")
    if found.gap["ci_low"] <= 0:
        assert found.parts.empty
        assert "holds 0" in found.sentences[0]
    else:
        assert not found.parts.empty


def test_groups_that_are_too_small_for_their_properties_have_no_parts(run: recbias.Run) -> None:
    found = recbias.explain(run, "nDCG by age < 9", model="ItemKNN", anyway=True)
    assert found.parts["part"].isna().all()
    assert [note for note in found.notes if "undefined" in note][1].startswith("reweighting is")
    assert "too small, to be made alike" in found.sentences[0]


def test_a_gap_that_may_be_chance_has_no_shares(run: recbias.Run) -> None:
    found = recbias.explain(run, "nDCG by race", model="ItemKNN", anyway=True)
    assert found.gap["ci_low"] <= 0
    assert found.parts["share"].isna().all()
    assert found.parts["part"].notna().all()
    assert "%" not in found.sentences[0]
    assert not any("half the gap" in sentence for sentence in found.sentences)


@pytest.mark.parametrize(
    ("gap", "options", "error", "message"),
    [
        ("nDCG", {}, WrongType, "not a metric by a label"),
        ("nDCG by cohort&gender", {}, Contradiction, "has 4 groups"),
        ("HR by gender", {}, UnknownName, "no metric 'HR'"),
        ("nDCG by gender", {"model": "EASE"}, UnknownName, "no model 'EASE'"),
        ("nDCG by gender", {"groups": ["gender=F", "gender=X"]}, UnknownName, "no group"),
    ],
)
def test_faults(
    run: recbias.Run, gap: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        recbias.explain(run, gap, **options)


def test_a_model_is_tuned_for_its_worst_group(run: recbias.Run, tmp_path: Path) -> None:
    with pytest.raises(Contradiction, match="no search that could optimize its worst group"):
        recbias.explain(run, "nDCG by gender", retrain=["worst"])
    space = {"neighbors": {"choice": [1, 30]}}
    tuned = {"name": "ItemKNN", "tune": {"metric": "Gini", "trials": 2, "space": space}}
    split = {"name": "random", "test": 0.2, "validation": 0.2}
    spec = {**SPEC, "models": [tuned], "split": split, "metrics": ["nDCG"]}
    run = recbias.run(spec, out=tmp_path / "results", progress=False)
    found = recbias.explain(run, "nDCG by gender", retrain=["worst"], anyway=True)
    before, worst, after = found.interventions["effect"]
    assert before == pytest.approx(found.gap["difference"])
    assert before + worst == pytest.approx(after)
    assert {*found.plots} == {"parts", "interventions"}
    found.write(tmp_path / "report")
    document = json.loads((tmp_path / "report" / "explanation.json").read_text(encoding="utf-8"))
    assert [row["change"] for row in document["interventions"]] == ["before", "worst", "after"]
    for name in ("report.md", "report.html"):
        text = (tmp_path / "report" / name).read_text(encoding="utf-8")
        assert found.sentences[0].split(";")[0] in text


def test_the_command(run: recbias.Run) -> None:
    folder = run.folder.parents[2]
    shown = invoke_recbias("explain", "small", "--gap", "nDCG by gender", folder=folder)
    assert shown.code == 0
    assert "models of the run" in shown.out
    page = run.folder.parent / "explained" / "ndcg-by-gender-of-itemknn" / "report.html"
    assert str(page) in shown.out.replace("\n", "")
    assert "Gap against the mean" in page.read_text(encoding="utf-8")
    shown = invoke_recbias("explain", "small", "--gap", "nDCG by gender", "--json", folder=folder)
    assert json.loads(shown.out)["gap"]["by"] == "gender"
    wrong = invoke_recbias("explain", "small", "--gap", "nDCG", folder=folder)
    assert wrong.code == 2
