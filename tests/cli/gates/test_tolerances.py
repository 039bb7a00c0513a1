from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

import recbias
from recbias.core.measures import FIT_COLUMNS, METRIC_KEY_COLUMNS, Direction
from recbias.runs.compare import measure_worsening
from support.commands import invoke_recbias
from support.hand_worked_runs import state, write_run
from support.specs import make_small_spec


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the runs ``good`` and ``bad``, whose lists are almost random."""
    folder = tmp_path_factory.mktemp("gates")
    metrics = ["nDCG", "ItemCoverage", {"name": "nDCG", "by": "age < 25"}]
    metrics.append({"name": "nDCG", "by": "gender", "gap": "difference"})
    for name, model in (("good", "MostPop"), ("bad", "Random")):
        models = ["MostPop", {"name": model, "label": "candidate"}]
        spec = make_small_spec(name=name, models=models, metrics=metrics, tests=[])
        recbias.run(spec, out=folder / "results")
    return folder


def test_only_a_change_in_the_bad_direction_fails(folder: Path) -> None:
    worse = invoke_recbias("compare", "good", "bad", "--fail-over", "nDCG=0.05", folder=folder)
    assert worse.code == 3
    line, *groups = worse.err.splitlines()
    assert line.startswith("out of tolerance: nDCG@5 of candidate is 0.")
    assert line.endswith("more than 0.05")
    assert [line.partition(" is ")[0] for line in groups] == [
        "out of tolerance: nDCG@5 of candidate for age < 25",
        "out of tolerance: nDCG@5 of candidate for not age < 25",
    ]
    better = invoke_recbias("compare", "bad", "good", "--fail-over", "nDCG=0.05", folder=folder)
    assert (better.code, better.err) == (0, "")


def test_each_metric_may_have_a_tolerance_of_its_own(folder: Path) -> None:
    words = ("compare", "good", "bad", "--fail-over", "0", "--fail-over")
    result = invoke_recbias(*words, "nDCG=1", folder=folder)
    assert not any("nDCG@5 of" in line for line in result.err.splitlines())
    assert "No tolerance given" not in result.out
    strict = invoke_recbias(*words, "nDCG=1", "--fail-over", "nDCG(by=age < 25)=0", folder=folder)
    assert strict.code == 3
    assert any(" of candidate for age < 25 is " in line for line in strict.err.splitlines())
    assert not any(" nDCG@5 of candidate is " in line for line in strict.err.splitlines())
    assert invoke_recbias("compare", "good", "bad", folder=folder).code == 0


def test_a_tolerance_is_of_the_units_that_both_runs_have(tmp_path: Path) -> None:
    # of u4 to u9, which both have, each is worse by 0.04 to 0.06; the means of the runs rise
    old = {f"u{at}": 0.5 if at > 3 else 0.0 for at in range(10)}
    new = {f"u{at}": 0.46 - 0.02 * (at % 2) for at in range(9, 3, -1)} | {"x": 0.9, "y": 0.9}
    for name, values in (("old", old), ("new", new)):
        row = state("EASE", sum(values.values()) / len(values), n=len(values))
        folder = tmp_path / "results" / name / "1"
        write_run(folder, [row])
        units = pd.DataFrame({"unit": "user", "unit_id": [*values], "value": [*values.values()]})
        keys = {key: row[key] for key in (*FIT_COLUMNS, *METRIC_KEY_COLUMNS)}
        units.assign(**keys).to_parquet(folder / "per_unit.parquet")
        (folder.parent / "latest").symlink_to("1")
    words = ("compare", "old", "new", "--fail-over", "0.02")
    failed = invoke_recbias(*words, folder=tmp_path)
    assert failed.code == 3
    assert failed.err.startswith("out of tolerance: nDCG@10 of EASE is 0.45 in new, 0.5 in old")
    lines = failed.out.splitlines()
    assert any("up to 4 units of old and 2 units of new" in line for line in lines)
    (row,) = json.loads(invoke_recbias(*words, "--json", folder=tmp_path).out)["values"]
    assert row["difference"] == pytest.approx(-0.05)
    assert row["ci_low"] < row["difference"] < row["ci_high"]


@pytest.mark.parametrize("text", ["nDGC=0.1", "nDCG", "-1", "nDCG=nan"])
def test_a_faulty_tolerance_is_refused(folder: Path, text: str) -> None:
    result = invoke_recbias("compare", "good", "bad", f"--fail-over={text}", folder=folder)
    assert result.code == 2
    assert result.err.startswith("error: --fail-over: ")


def test_published_values_may_differ_by_the_tolerance_of_their_metric(
    finished_runs: Path,
) -> None:
    words = ("compare", "one", "--reference", "children/a3", "--fail-over", "1")
    result = invoke_recbias(*words, folder=finished_runs)
    assert (result.code, result.err) == (0, "")
    result = invoke_recbias(*words, "--fail-over", "nDCG=0", "--json", folder=finished_runs)
    assert result.code == 3
    excesses = json.loads(result.out)["out_of_tolerance"]
    assert {row["metric"] for row in excesses} == {"nDCG@10"}
    assert result.err.startswith("out of tolerance: nDCG@10 of ")
    assert invoke_recbias(*words, "--fail-over", "x=1", folder=finished_runs).code == 2


def test_values_that_the_newer_run_lacks_fail(folder: Path) -> None:
    spec = make_small_spec(name="fewer", models=["MostPop"], metrics=["nDCG"], tests=[])
    recbias.run(spec, out=folder / "results")
    tolerant = invoke_recbias(
        "compare", "good", "fewer", "--json", "--fail-over", "nDCG=1", folder=folder
    )
    assert tolerant.code == 3
    lines = tolerant.err.splitlines()
    assert set(lines) == {
        "out of tolerance: nDCG@5 of candidate: fewer lacks 1 value of good",
        "out of tolerance: nDCG@5 by age < 25 of MostPop: fewer lacks 2 values of good",
        "out of tolerance: nDCG@5 by age < 25 of candidate: fewer lacks 2 values of good",
    }
    content = json.loads(tolerant.out)
    n_values = len(recbias.load("good", folder / "results").metrics)
    assert content["excluded"] == [{"run": "good", "lacking": "fewer", "values": n_values - 1}]
    missing = {
        (row["metric"], row["model"]): row["missing"] for row in content["out_of_tolerance"]
    }
    assert missing["nDCG@5", "candidate"] == 1
    words = ("--fail-over", "ItemCoverage=1")
    lost = invoke_recbias("compare", "good", "fewer", *words, folder=folder)
    assert lost.code == 3
    assert len(lost.err.splitlines()) == 2  # of both models
    assert invoke_recbias("compare", "good", "fewer", folder=folder).code == 0
    assert invoke_recbias("compare", "fewer", "good", *words, folder=folder).code == 0


def test_a_value_of_other_queries_is_not_comparable(folder: Path) -> None:
    spec = make_small_spec(
        name="young",
        models=["MostPop", {"name": "MostPop", "label": "candidate"}],
        metrics=["nDCG", "ItemCoverage"],
        queries={"name": "users", "where": "age < 25"},
        tests=[],
    )
    recbias.run(spec, out=folder / "results")
    words = ("compare", "young", "good", "--fail-over")
    failed = invoke_recbias(*words, "0", folder=folder)
    assert failed.code == 3
    assert failed.err.splitlines() == [
        f"out of tolerance: item coverage@5 of {model}: not comparable, "
        "1 value of good of other queries than young"
        for model in ("MostPop", "candidate")
    ]
    assert "young and good have different queries of demo." in failed.out
    assert invoke_recbias(*words, "nDCG=0", folder=folder).code == 0


@pytest.mark.parametrize(
    ("old", "new", "direction", "expected"),
    [
        (0.5, 0.25, "higher", 0.25),
        (0.25, 0.5, "higher", -0.25),
        (0.25, 0.5, "lower", 0.25),
        (-0.5, 0.25, "zero", -0.25),  # 0.5 from 0, then 0.25
        (-0.25, 0.75, "none", 0.5),
        (0.5, math.nan, "higher", math.inf),
        (math.nan, 0.5, "higher", 0.0),
        (math.nan, math.nan, "lower", 0.0),
    ],
)
def test_worsening_is_the_change_in_the_bad_direction(
    old: float, new: float, direction: Direction, expected: float
) -> None:
    assert measure_worsening(old, new, direction) == expected
