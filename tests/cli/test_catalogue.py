from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from recbias.api import read_experiment
from recbias.cli.catalogue import KINDS, describe, list_entries
from recbias.config.settings import list_parameters
from recbias.config.source import list_specs
from recbias.core.errors import Faults, MissingFile
from recbias.registry import REGISTRIES
from recbias.reports.published import load_published
from support.commands import invoke_recbias


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_plugin_is_described_with_its_parameters(kind: str) -> None:
    for name in REGISTRIES[kind].table:
        text = describe(name, 79)
        assert f"{name} ({REGISTRIES[kind].kind})\n" in text
        for row in list_parameters(REGISTRIES[kind].load(name)):
            assert f"\n    {row.name}: " in text
            assert row.doc, f"{name}: {row.name} has no description"
        assert "``" not in text
        assert not [line for line in text.splitlines() if line != line.rstrip()]
        if kind == "metrics":
            for title in ("Direction: ", "Range: ", "Needs: ", "Source: "):
                assert f"\n{title}" in text
            assert "\n    " in text.partition("Parameters:")[0], "no formula"


def test_spec_is_shown_with_its_content_and_command() -> None:
    text = describe("papers/aab")  # as `recbias run` accepts it
    path = list_specs()["papers/aab/ml-1m-gender"]
    assert text.startswith("papers/aab/ml-1m-gender (spec)\n")
    assert text.endswith(path.read_text("utf-8").rstrip())
    assert "recbias init papers/aab/ml-1m-gender" in text


def test_published_table_is_shown_with_its_values() -> None:
    text = describe("aab/3")
    published = load_published("aab/3")
    rows = [line.split() for line in text.splitlines() if re.search(r" R-RIPA +-?[0-9]", line)]
    assert [float(row[-2]) for row in rows] == published.loc[
        published["metric"] == "R-RIPA", "value"
    ].tolist()
    assert "recbias compare RUN --reference aab/3" in text
    assert "dataset: ML_S-bar" in describe("Children/A.3")


def test_set_of_templates_is_described_with_its_contents() -> None:
    text = describe("Restaurants", 79)
    assert text.startswith("restaurants (templates)\n")
    assert "3,834 prompts" in text
    assert "\nnames: 18 sentences, 1,566 prompts\n" in text
    assert "    [name]: 87 words (Allison, Anne, " in text
    assert "    race: white (44), black (43)\n" in text
    assert "    religion: christian (1), muslim (1), jewish (1)\n" in text
    assert '    "I promised [name] a nice meal out"' in text
    assert "Tables 6 and 7" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 79


def test_packaged_set_is_printed_completely(tmp_path: Path) -> None:
    result = invoke_recbias("show", "restaurants", "--prompts", folder=tmp_path)
    assert result.code == 0
    table = pd.read_csv(io.StringIO(result.out))
    assert len(table) == 3834
    assert table["query_id"].is_unique


def test_prompt_is_shown_with_its_template_and_history() -> None:
    lines = describe("watch-history", 79).splitlines()
    assert lines[0] == "watch_history (prompt)"
    assert "    {history}" in lines
    assert "    - Leave out films released after {year_limit}." in lines
    assert "    {history}: all items, oldest first: - {title} ({year})" in lines
    assert any(line.startswith("Source: ") for line in lines)


@pytest.mark.parametrize("kind", KINDS)
def test_list_has_one_line_per_name(tmp_path: Path, kind: str) -> None:
    result = invoke_recbias("list", kind, folder=tmp_path)
    assert (result.code, result.err) == (0, "")
    entries = list_entries(kind)
    head, rule, *lines = result.out.splitlines()
    assert head.split()[:2] == ["name", "description"]
    assert set(rule) == {"─"}
    rows = [line for line in lines if not line.startswith("Extra: ")]  # the note below
    assert [tuple(re.split(" {2,}", line)[:2]) for line in rows] == entries


def test_schema_is_printed_as_json(tmp_path: Path) -> None:
    result = invoke_recbias("schema", folder=tmp_path)
    assert (result.code, result.err) == (0, "")
    schema = json.loads(result.out)
    assert {*re.findall(r'"#/\$defs/([^"]+)"', result.out)} <= {*schema["$defs"]}
    assert {"name", "dataset", "models", "metrics", "tests"} <= set(schema["properties"])
    assert all(f'"{name}"' in result.out for name in REGISTRIES["models"].table)


PLUGIN_KINDS = ("metric", "model", "detector", "dataset")


@pytest.fixture(scope="module")
def new_plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a new plug-in of each kind and its test."""
    folder = tmp_path_factory.mktemp("new")
    for kind in PLUGIN_KINDS:
        name = f"My{kind.title()}"
        result = invoke_recbias("new", kind, name, folder=folder)
        assert result.code == 0, result.err
        assert f"./my_{kind}.py:{name}" in result.out
    return folder


def test_new_plugins_pass_their_own_tests_as_written(new_plugins: Path) -> None:
    files = [f"test_my_{kind}.py" for kind in PLUGIN_KINDS]
    command = [sys.executable, "-m", "unittest", "-v", *files]
    tests = subprocess.run(command, cwd=new_plugins, capture_output=True, text=True)
    assert tests.returncode == 0, tests.stderr
    assert tests.stderr.count("... ok\n") == 2 * len(PLUGIN_KINDS), tests.stderr


@pytest.mark.parametrize("kind", PLUGIN_KINDS)
def test_a_new_plugin_is_shown(new_plugins: Path, kind: str) -> None:
    name = f"./my_{kind}.py:My{kind.title()}"
    page = invoke_recbias("show", name, folder=new_plugins).out
    assert page.count(f"{name} (") == 1
    assert page.startswith(f"{name} ({kind})")


@pytest.mark.parametrize(
    ("word", "metric"), [("novelty", "self_information"), ("demographic parity", "EXP")]
)
def test_a_word_of_the_field_leads_to_the_metrics_that_mention_it(
    tmp_path: Path, word: str, metric: str
) -> None:
    result = invoke_recbias("show", word, folder=tmp_path)
    assert result.code == 2
    assert metric in result.err.rpartition("in their description: ")[2]


@pytest.mark.parametrize(
    ("arguments", "message", "remedy"),
    [
        (("metrc", "Mine"), "no kind is called 'metrc'", "did you mean metric?"),
        (("metric", "my-metric"), "'my-metric' cannot be the name of a class", "like MyMetric"),
        (("metric", "Mine"), "mine.py exists already", "choose another name"),
        (("metric", "Json"), "json.py would hide a module of Python", "MyJson"),
    ],
)
def test_a_plugin_that_cannot_be_written_is_a_user_error(
    tmp_path: Path, arguments: tuple[str, str], message: str, remedy: str
) -> None:
    (tmp_path / "mine.py").write_text("")
    result = invoke_recbias("new", *arguments, folder=tmp_path)
    assert result.code == 2
    error, help_ = result.err.splitlines()
    assert error == f"error: {message}"
    assert remedy in help_
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


@pytest.mark.parametrize("name", ["quickstart", "multiverse"])
def test_what_init_writes_runs_by_its_name(name: str, tmp_path: Path) -> None:
    written = invoke_recbias("init", name, folder=tmp_path)
    assert written.code == 0
    assert written.out.splitlines()[0] == f"wrote {name}.yaml"
    assert written.out.splitlines()[-1] == f"next: recbias run {name}"
    less = "multiverse={k: [5, 10]}" if name == "multiverse" else "report.formats=[csv, md]"
    finished = invoke_recbias("run", name, "--quiet", "--set", less, folder=tmp_path)
    assert finished.code == 0, finished.err
    if name == "multiverse":  # which is no single run
        assert finished.out.startswith("Holds in ")
        return
    (manifest,) = (tmp_path / "results" / name).glob("*Z-*/manifest.json")
    checks = json.loads(manifest.read_text(encoding="utf-8"))["checks"]
    assert {check["verdict"] for check in checks} == {"pass"}
    report = manifest.with_name("report.md").read_text(encoding="utf-8")
    assert "w: the worst-off group of the model" in report
    spec = tmp_path / f"{name}.yaml"
    spec.write_text(f"{spec.read_text(encoding='utf-8')}metrics: [nonsense]\n", encoding="utf-8")
    assert f"{name}.yaml" in invoke_recbias("plan", name, folder=tmp_path).err  # the file wins


@pytest.mark.parametrize("name", [name for name in list_specs() if name != "probe"])
def test_every_packaged_spec_is_written_with_what_it_reads(name: str, tmp_path: Path) -> None:
    assert invoke_recbias("init", name, folder=tmp_path).code == 0
    assert (tmp_path / f"{name}.yaml").read_bytes() == list_specs()[name].read_bytes()
    try:
        assert read_experiment(tmp_path / f"{name}.yaml").name
    except Faults as error:  # files of the user, which comments of it or of what it extends name
        texts = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.yaml")]
        lines = "\n".join(texts).splitlines()
        comments = "\n".join(line for line in lines if line.startswith("#"))
        for fault in error.faults:
            assert isinstance(fault, MissingFile)
            assert fault.message.split("'")[1] in comments


def test_init_never_overwrites(tmp_path: Path) -> None:
    assert invoke_recbias("init", "audit", folder=tmp_path).code == 0
    again = invoke_recbias("init", "audit", folder=tmp_path)
    assert again.code == 0
    assert "wrote" not in again.out
    lines = again.out.splitlines()
    assert lines[:2] == [
        "unchanged audit.yaml: it was here",
        "unchanged audit/items.csv: it was here",
    ]
    table = tmp_path / "audit" / "items.csv"
    table.write_text("mine", encoding="utf-8")
    (tmp_path / "audit.yaml").unlink()
    refused = invoke_recbias("init", "audit", folder=tmp_path)
    assert refused.code == 2
    assert "items.csv: exists, with other content" in refused.err
    assert "help: move it away" in refused.err
    assert table.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "audit.yaml").exists()


def test_the_gate_of_an_audit_fails_for_the_lists_that_treat_groups_unequally(
    tmp_path: Path,
) -> None:
    invoke_recbias("init", "audit", folder=tmp_path)
    options = ("--quiet", "--set", "checks.0.models=[theirs]", "--set", "report.formats=[csv]")
    assert invoke_recbias("run", "audit", *options, folder=tmp_path).code == 3
