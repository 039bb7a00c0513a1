from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

import recbias
from recbias.core.files import compute_digest
from recbias.core.measures import FIT_COLUMNS, METRIC_KEY_COLUMNS, Direction
from recbias.runs.compare import measure_worsening
from recbias.runs.tables import find_run
from support.commands import CommandResult, invoke_recbias
from support.hand_worked_runs import state, write_run
from support.specs import make_small_spec

SPEC = """\
name: release
dataset: {name: demo, n_users: 80, n_items: 60}
split: {name: random, test: 0.2}
k: 5
models: [Random, MostPop, ItemKNN]
metrics: [nDCG, ItemCoverage, {name: nDCG, by: gender, gap: difference}]
tests: []
checks:
  - {metric: nDCG, at_least: AT_LEAST, models: [ItemKNN]}
  - {metric: nDCG, not_below: Random, margin: 0.01, strict: STRICT}
"""


def run_spec(folder: Path, at_least: float, *, strict: bool = False) -> CommandResult:
    text = SPEC.replace("AT_LEAST", str(at_least)).replace("STRICT", str(strict).lower())
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    return invoke_recbias("run", "spec.yaml", "--verbose", folder=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checks")


def test_a_run_whose_checks_pass_exits_with_0(folder: Path) -> None:
    result = run_spec(folder, 0.01)
    assert result.code == 0, result.err
    head, *rows = result.out.partition("Checks (@5)\n")[2].splitlines()
    assert head.split() == ["model", "metric", "value", "95%", "interval", "limit", "verdict"]
    assert [line.split()[0] for line in rows[1:3]] == ["ItemKNN", "ItemKNN"]
    assert all(line.endswith("pass") for line in rows[1:3])


def test_a_failed_check_exits_with_3_and_computes_nothing_again(folder: Path) -> None:
    run_spec(folder, 0.01)
    result = run_spec(folder, 0.9)
    assert result.code == 3
    stages = [line for line in result.err.splitlines() if ":" in line and "warning" not in line]
    assert stages
    assert all(line.endswith(": cached") for line in stages)
    first = result.out.partition("Checks (@5)\n")[2].splitlines()[2]
    assert first.startswith("ItemKNN  nDCG ")
    assert first.endswith("fail")
    assert "1 of 2 failed, 0 undecided." in result.out


def test_verdicts_are_in_every_format(folder: Path) -> None:
    run_spec(folder, 0.9)
    run = find_run("release", folder / "results")
    root = ET.parse(run / "checks.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    rows = json.loads((run / "report.json").read_text(encoding="utf-8"))["checks"]
    assert [row["verdict"] for row in rows] == ["fail", "pass"]
    for name in ("report.md", "report.html", "tables/checks.tex"):
        text = (run / name).read_text(encoding="utf-8")
        assert "at least 0.9" in text, name
        assert "1 of 2 failed, 0 undecided." in text, name


@pytest.fixture(scope="module")
def folder_tolerances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the runs ``good`` and ``bad``, whose lists are almost random."""
    folder = tmp_path_factory.mktemp("gates")
    metrics = ["nDCG", "ItemCoverage", {"name": "nDCG", "by": "age < 25"}]
    metrics.append({"name": "nDCG", "by": "gender", "gap": "difference"})
    for name, model in (("good", "MostPop"), ("bad", "Random")):
        models = ["MostPop", {"name": model, "label": "candidate"}]
        spec = make_small_spec(name=name, models=models, metrics=metrics, tests=[])
        recbias.run(spec, out=folder / "results")
    return folder


def test_only_a_change_in_the_bad_direction_fails(folder_tolerances: Path) -> None:
    worse = invoke_recbias(
        "compare", "good", "bad", "--fail-over", "nDCG=0.05", folder=folder_tolerances
    )
    assert worse.code == 3
    line, *groups = worse.err.splitlines()
    assert line.startswith("out of tolerance: nDCG@5 of candidate is 0.")
    assert line.endswith("more than 0.05")
    assert worse.out.startswith(f"FAIL: 3 values {line}\n")
    assert [line.partition(" is ")[0] for line in groups] == [
        "out of tolerance: nDCG@5 of candidate for age < 25",
        "out of tolerance: nDCG@5 of candidate for not age < 25",
    ]
    better = invoke_recbias(
        "compare", "bad", "good", "--fail-over", "nDCG=0.05", folder=folder_tolerances
    )
    assert (better.code, better.err) == (0, "")
    assert better.out.startswith("PASS: no value is out of tolerance\n")


def test_each_metric_may_have_a_tolerance_of_its_own(folder_tolerances: Path) -> None:
    words = ("compare", "good", "bad", "--fail-over", "0", "--fail-over")
    result = invoke_recbias(*words, "nDCG=1", folder=folder_tolerances)
    assert not any("nDCG@5 of" in line for line in result.err.splitlines())
    assert "No tolerance given" not in result.out
    strict = invoke_recbias(
        *words, "nDCG=1", "--fail-over", "nDCG(by=age < 25)=0", folder=folder_tolerances
    )
    assert strict.code == 3
    assert any(" of candidate for age < 25 is " in line for line in strict.err.splitlines())
    assert not any(" nDCG@5 of candidate is " in line for line in strict.err.splitlines())
    assert invoke_recbias("compare", "good", "bad", folder=folder_tolerances).code == 0


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
def test_a_faulty_tolerance_is_refused(folder_tolerances: Path, text: str) -> None:
    result = invoke_recbias(
        "compare", "good", "bad", f"--fail-over={text}", folder=folder_tolerances
    )
    assert result.code == 2
    assert result.err.startswith("error: --fail-over: ")


def test_published_values_may_differ_by_the_tolerance_of_their_metric(finished_runs: Path) -> None:
    words = ("compare", "one", "--reference", "children/a3", "--fail-over", "1")
    result = invoke_recbias(*words, folder=finished_runs)
    assert (result.code, result.err) == (0, "")
    result = invoke_recbias(*words, "--fail-over", "nDCG=0", "--json", folder=finished_runs)
    assert result.code == 3
    excesses = json.loads(result.out)["out_of_tolerance"]
    assert {row["metric"] for row in excesses} == {"nDCG@10"}
    assert result.err.startswith("out of tolerance: nDCG@10 of ")
    assert invoke_recbias(*words, "--fail-over", "x=1", folder=finished_runs).code == 2


def test_values_that_the_newer_run_lacks_fail(folder_tolerances: Path) -> None:
    spec = make_small_spec(name="fewer", models=["MostPop"], metrics=["nDCG"], tests=[])
    recbias.run(spec, out=folder_tolerances / "results")
    tolerant = invoke_recbias(
        "compare", "good", "fewer", "--json", "--fail-over", "nDCG=1", folder=folder_tolerances
    )
    assert tolerant.code == 3
    lines = tolerant.err.splitlines()
    assert set(lines) == {
        "out of tolerance: nDCG@5 of candidate: fewer lacks 1 value of good",
        "out of tolerance: nDCG@5 by age < 25 of MostPop: fewer lacks 2 values of good",
        "out of tolerance: nDCG@5 by age < 25 of candidate: fewer lacks 2 values of good",
    }
    content = json.loads(tolerant.out)
    n_values = len(recbias.load("good", folder_tolerances / "results").metrics)
    assert content["excluded"] == [{"run": "good", "lacking": "fewer", "values": n_values - 1}]
    missing = {
        (row["metric"], row["model"]): row["missing"] for row in content["out_of_tolerance"]
    }
    assert missing["nDCG@5", "candidate"] == 1
    words = ("--fail-over", "ItemCoverage=1")
    lost = invoke_recbias("compare", "good", "fewer", *words, folder=folder_tolerances)
    assert lost.code == 3
    assert len(lost.err.splitlines()) == 2  # of both models
    assert invoke_recbias("compare", "good", "fewer", folder=folder_tolerances).code == 0
    assert invoke_recbias("compare", "fewer", "good", *words, folder=folder_tolerances).code == 0


def test_a_value_of_other_queries_is_not_comparable(folder_tolerances: Path) -> None:
    spec = make_small_spec(
        name="young",
        models=["MostPop", {"name": "MostPop", "label": "candidate"}],
        metrics=["nDCG", "ItemCoverage"],
        queries={"name": "users", "where": "age < 25"},
        tests=[],
    )
    recbias.run(spec, out=folder_tolerances / "results")
    words = ("compare", "young", "good", "--fail-over")
    failed = invoke_recbias(*words, "0", folder=folder_tolerances)
    assert failed.code == 3
    assert failed.err.splitlines() == [
        f"out of tolerance: item coverage@5 of {model}: not comparable, "
        "1 value of good of other queries than young"
        for model in ("MostPop", "candidate")
    ]
    assert "young and good have different queries of demo." in failed.out
    assert invoke_recbias(*words, "nDCG=0", folder=folder_tolerances).code == 0


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


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ``run``, a run folder with its card."""
    folder = tmp_path_factory.mktemp("audited")
    spec = make_small_spec(
        metrics=["nDCG", "Gini", {"name": "nDCG", "by": "gender"}],
        checks=[{"metric": "nDCG", "at_least": 0.01}],
        report={"formats": ["card"]},
    )
    shutil.copytree(recbias.run(spec, out=folder / "results").folder, folder / "run")
    return folder


@pytest.fixture
def folder_verification(audited: Path, tmp_path: Path) -> Path:
    """Return a copy of ``audited`` that a test may change."""
    shutil.copytree(audited, tmp_path / "work", ignore=shutil.ignore_patterns("results"))
    return tmp_path / "work"


def verify(folder_verification: Path, *words: str) -> CommandResult:
    return invoke_recbias("verify", "run/card.json", "run", *words, folder=folder_verification)


def test_an_unchanged_card_is_the_same(audited: Path) -> None:
    result = verify(audited)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("same: card ")


def change_text(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def change_metrics(folder_verification: Path) -> None:
    """Change a digit of the first value of ``metrics.csv``."""
    path = folder_verification / "run" / "metrics.csv"
    value = path.read_text(encoding="utf-8").splitlines()[1].split(",")[8]
    assert value.startswith("0.")
    digit = "1" if value[3] != "1" else "2"
    change_text(path, f",{value},", f",{value[:3]}{digit}{value[4:]},")


def change_size(folder_verification: Path) -> None:
    """Cut the last line of ``metrics.csv`` off."""
    path = folder_verification / "run" / "metrics.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")


def change_card(
    folder_verification: Path, edit: Callable[[dict[str, Any]], None], *, seal: bool
) -> None:
    """Edit the card; with ``seal`` its digest is computed again, as a forger would."""
    path = folder_verification / "run" / "card.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    edit(card)
    if seal:
        content = {key: card[key] for key in card if key != "digest"}
        card["digest"] = compute_digest(content)
    path.write_text(json.dumps(card), encoding="utf-8")


def raise_value(card: dict[str, Any]) -> None:
    card["estimates"][0]["value"] += 0.01


def test_a_changed_digit_of_the_metrics_is_found(folder_verification: Path) -> None:
    change_metrics(folder_verification)
    result = verify(folder_verification, "--json")
    assert result.code == 3
    document = json.loads(result.out)
    assert document["same"] is False
    file, figure = document["differences"]
    assert file["location"] == "file metrics.csv"
    assert figure["location"] == "estimates: nDCG@5 demo MostPop 42 1: value"
    assert abs(float(figure["stated"]) - float(figure["found"])) > 0.001


def test_the_last_digit_of_another_machine_is_no_difference(folder_verification: Path) -> None:
    def scale(factor: float) -> Callable[[dict[str, Any]], None]:
        return lambda card: card["estimates"][0].update(
            value=card["estimates"][0]["value"] * factor
        )

    change_card(folder_verification, scale(1.0 + 1e-14), seal=True)
    assert verify(folder_verification).code == 0
    change_card(folder_verification, scale(1.0 + 1e-6), seal=True)
    assert verify(folder_verification).code == 3


@pytest.mark.parametrize("name", ["report.md", "tables/summary.tex"])
def test_a_report_that_is_not_as_it_was_written_is_found(
    folder_verification: Path, name: str
) -> None:
    words = ("report", "run", "--format", "json,md,latex,card")
    assert invoke_recbias(*words, folder=folder_verification).code == 0
    assert verify(folder_verification).code == 0
    path = folder_verification / "run" / name
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    (difference,) = json.loads(verify(folder_verification, "--json").out)["differences"]
    assert difference["location"] == f"file {name}: as written"
    path.unlink()
    assert verify(folder_verification).code == 0
    assert invoke_recbias(*words, folder=folder_verification).code == 0
    assert verify(folder_verification).code == 0


def test_a_cut_table_is_a_difference_not_a_fault_of_the_user(folder_verification: Path) -> None:
    change_size(folder_verification)
    result = verify(folder_verification)
    assert (result.code, result.err) == (3, "")
    assert "the run cannot be read" in result.out


@pytest.mark.parametrize("seal", [False, True])
def test_a_changed_figure_of_the_card_is_found(folder_verification: Path, seal: bool) -> None:
    change_card(folder_verification, raise_value, seal=seal)
    result = verify(folder_verification, "--json")
    assert result.code == 3
    places = [row["location"] for row in json.loads(result.out)["differences"]]
    digest = [] if seal else ["digest of the card"]
    assert places == [*digest, "estimates: nDCG@5 demo MostPop 42 1: value"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "card.json:1: is not JSON"),
        ("[" * 100_000, "is not JSON: it is nested too deeply"),
        ("{}", "card.json: audited: is not that of a card: Field required"),
    ],
)
def test_a_file_that_is_no_card_is_a_fault(
    folder_verification: Path, content: str, message: str
) -> None:
    (folder_verification / "run" / "card.json").write_text(content, encoding="utf-8")
    result = verify(folder_verification)
    assert (result.code, result.out) == (2, "")
    assert message in result.err.splitlines()[0]
    assert "help: give a card.json that" in result.err
