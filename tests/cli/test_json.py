from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import pytest

import recbias
from recbias.cli.catalogue import KINDS, list_entries
from recbias.cli.output import describe_errors, render_document
from recbias.core.errors import BadYaml, MissingFile, MissingRun, RecbiasError, UnknownName
from recbias.reports.run import read_run
from support.commands import (
    SMALL,
    TABLES_ONLY,
    CommandResult,
    invoke_recbias,
    run_recbias,
    write_small_spec,
)
from support.specs import make_small_spec


@pytest.mark.parametrize(
    "text", ["é", "\x7f", "\x9b2J", "\u202e", "\u2028", "\ud800", "😀", 'a"b\\n\n', "\x1b[2J"]
)
def test_document_is_ascii_without_control_characters(text: str) -> None:
    rendered = render_document({"runs": [{"name": text}], text: text})
    assert rendered.isascii()
    assert all(line.isprintable() for line in rendered.split("\n"))
    assert json.loads(rendered) == {"runs": [{"name": text}], text: text}


CHECKED = """\
name: checked
dataset: {name: demo, n_users: 60, n_items: 40}
split: {name: random, test: 0.2}
k: 5
models: [MostPop, Random]
metrics: [nDCG, {name: HR, by: gender}]
tests: [paired_t]
checks: [{metric: nDCG, at_least: 0.9, models: [MostPop]}]
report: {formats: [csv]}
"""

NOISY = """
from recbias.models.baselines import MostPop


class Noisy(MostPop):
    def fit(self, data, rng):
        print("printed by the model")
        raise ValueError("fit has failed")
"""


def refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not JSON"
    raise ValueError(message)


def read_document_of_json_commands(result: CommandResult) -> dict[str, Any]:
    """Return the only content of standard output, by a parser that refuses NaN and Infinity."""
    document: dict[str, Any] = json.loads(result.out, parse_constant=refuse_constant)
    assert document["schema_version"] == 1
    assert result.out.isascii()
    return document


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a finished run whose check failed."""
    folder = tmp_path_factory.mktemp("checked")
    (folder / "checked.yaml").write_text(CHECKED, encoding="utf-8")
    assert invoke_recbias("run", "checked.yaml", "--quiet", folder=folder).code == 3
    return folder


def test_run_says_what_its_text_says(checked: Path) -> None:
    text = invoke_recbias("run", "checked.yaml", folder=checked)
    result = invoke_recbias("run", "checked.yaml", "--json", folder=checked)
    assert (result.code, text.code) == (3, 3)
    document = read_document_of_json_commands(result)
    assert (document["exit_code"], document["exit_meaning"]) == (3, "a check failed")
    assert (document["name"], document["models"]) == ("checked", ["MostPop", "Random"])
    assert (document["report"], document["failures"], document["warnings"]) == (None, [], [])
    run = read_run(checked / document["folder"])
    assert document["run"] == run.folder.name
    verdict = document["verdict"]
    assert verdict["state"] == "fail"
    assert text.out.splitlines()[0] == verdict["line"]
    assert all(sentence in text.out for sentence in verdict["sentences"])
    assert document["conclusions"][0]["sentence"] in verdict["sentences"]
    values = {(row["model"], row["metric"], row["group"]): row for row in document["summary"]}
    assert len(values) == len(run.metrics)
    ndcg = values["MostPop", "nDCG", ""]
    assert f"{ndcg['value']:.4f}" in text.out
    assert f"{values['Random', 'HR(by=gender)', 'gender=F']['value']:.4f}" in text.out
    (check,) = document["checks"]
    assert (check["model"], check["verdict"], check["failed"]) == ("MostPop", "fail", True)
    assert check["value"] == ndcg["value"]


def test_a_failed_model_and_what_it_prints_are_not_on_stdout(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY, encoding="utf-8")
    text = SMALL.replace("ItemKNN]", '{name: "./noisy.py:Noisy"}]') + TABLES_ONLY
    spec = write_small_spec(tmp_path, text)
    result = run_recbias("run", spec, "--json", "--workers", 2, folder=tmp_path)
    document = read_document_of_json_commands(result)
    assert result.code == document["exit_code"] == 1
    assert document["exit_meaning"] == "a stage failed"
    (failure,) = document["failures"]
    assert failure["message"].startswith("ValueError: fit has failed (noisy.py:")
    assert failure["user"] is False
    assert f"failed: {failure['stage']}: {failure['message']}" in result.err
    assert "printed by the model" in result.err
    assert {row["model"] for row in document["summary"]} == {"Random", "MostPop"}


def test_list_names_the_entries_of_a_kind_or_of_all(tmp_path: Path) -> None:
    every = read_document_of_json_commands(invoke_recbias("list", "--json", folder=tmp_path))[
        "kinds"
    ]
    assert [*every] == [*KINDS]
    models = read_document_of_json_commands(
        invoke_recbias("list", "Models", "--json", folder=tmp_path)
    )["kinds"]
    assert models == {"models": every["models"]}
    entries = [(row["name"], row["summary"]) for row in every["models"]]
    assert entries == list_entries("models")
    extras = {row["name"]: row["extra"] for row in every["models"]}
    assert (extras["EASE"], extras["MultiVAE"]) == (None, "torch")


METRICS = ["nDCG", "ItemCoverage", {"name": "nDCG", "by": "gender"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the runs ``old`` and ``new`` and the spec of ``new``."""
    folder = tmp_path_factory.mktemp("numbers")
    for name, neighbors in (("old", 20), ("new", 3)):
        models = ["MostPop", {"name": "ItemKNN", "neighbors": neighbors}]
        spec = make_small_spec(name=name, models=models, metrics=METRICS)
        recbias.run(spec, out=folder / "results")
    (folder / "new.yaml").write_text(json.dumps(spec), encoding="utf-8")
    return folder


def call(folder: Path, *words: str, code: int = 0) -> dict[str, Any]:
    """Return the document of a command, which prints nothing else."""
    result = invoke_recbias(*words, "--json", folder=folder)
    assert result.code == code, result.err
    document: dict[str, Any] = json.loads(result.out)
    return document


def read_rows(folder: Path, run: str, file: str = "metrics.csv") -> list[dict[str, str]]:
    path = recbias.load(run, folder / "results").folder / file
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def assert_equal(value: object, text: str, name: str) -> None:
    """Compare a value of a document with a cell of CSV, digit by digit."""
    if isinstance(value, float):
        assert value.hex() == float(text).hex(), name
    else:
        assert ("" if value is None else str(value)) == text.removesuffix(".0"), name


def test_summary_of_a_run_is_metrics_csv(folder: Path) -> None:
    document = call(folder, "run", "new.yaml", "--quiet")
    rows = read_rows(folder, "new")
    assert len(document["summary"]) == len(rows)
    for row, cells in zip(document["summary"], rows, strict=True):
        assert [*row] == [*cells]
        for name, value in row.items():
            assert_equal(value, cells[name], name)
    report = json.loads((folder / document["folder"] / "manifest.json").read_text("utf-8"))
    assert all(document[name] == report[name] for name in ("seconds", "started", "warnings"))


def test_power_and_runs_are_those_of_python(folder: Path) -> None:
    document = call(folder, "power", "new", "--difference", "0.05")
    frame = recbias.power(recbias.load("new", folder / "results"), 0.05)
    for name in ("n", "difference", "alpha", "detectable", "needed", "needed_a", "needed_b"):
        column = pd.Series([row[name] for row in document["rows"]], dtype="float64", name=name)
        expected = frame[name].astype("float64")
        pd.testing.assert_series_equal(column, expected, check_exact=True)
    runs = recbias.list_runs(folder / "results")
    listed = call(folder, "runs")["runs"]
    assert [row["seconds"] for row in listed] == runs["seconds"].tolist()
    assert [row["failures"] for row in listed] == runs["failures"].tolist()


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (UnknownName("m", where="a b.yaml:3:8: models[1]"), ("models[1]", "a b.yaml", 3, 8)),
        (BadYaml("m", where="spec.yaml:3:8"), (None, "spec.yaml", 3, 8)),
        (MissingFile("m", where="data/x.csv:17"), (None, "data/x.csv", 17, None)),
        (MissingFile("m", where="x.csv"), (None, "x.csv", None, None)),
        (MissingRun("m", where="results/one"), (None, "results/one", None, None)),
        (UnknownName("m", where="--format"), ("--format", None, None, None)),
        (MissingFile("m", where="encoder"), ("encoder", None, None, None)),
    ],
)
def test_errors_have_their_place(error: RecbiasError, place: tuple[object, ...]) -> None:
    (row,) = describe_errors(error)
    assert tuple(row[name] for name in ("where", "file", "line", "column")) == place
    assert (row["message"], row["help"]) == ("m", error.remedy or None)


def test_plan_counts_requests_and_tokens(tmp_path: Path) -> None:
    llm = "{model: small, max_tokens: 100, prices: {input: 0, output: 100}}"
    text = SMALL.replace("MostPop, ItemKNN]", f"{{name: WOK, llm: {llm}}}]")
    write_small_spec(tmp_path, text)
    document = read_document_of_json_commands(
        invoke_recbias("plan", "small.yaml", "--json", "--limit", 3, folder=tmp_path)
    )
    assert document["requests"] == [
        {
            "model": "WOK",
            "requests": 3,
            "stored": 0,
            "to_send": 3,
            "tokens_out": 300,
            "money": 0.03,
            "tokens_in": document["requests"][0]["tokens_in"],
            "budget": None,
            "problem": None,
        }
    ]
    assert document["requests"][0]["tokens_in"] > 300
