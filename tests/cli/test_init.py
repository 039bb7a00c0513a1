"""``recbias init`` writes specs that run, and never overwrites."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recbias.api import read_experiment
from recbias.config.source import STARTS, list_specs
from recbias.core.errors import Faults, MissingFile
from support.commands import invoke_recbias


@pytest.mark.parametrize("name", STARTS)
def test_what_init_writes_runs_by_its_name(name: str, tmp_path: Path) -> None:
    written = invoke_recbias("init", name, folder=tmp_path)
    assert written.code == 0
    assert written.out.splitlines()[0] == f"wrote {name}.yaml"
    assert written.out.splitlines()[-1] == f"next: recbias run {name}"
    finished = invoke_recbias("run", name, "--quiet", folder=tmp_path)
    assert finished.code == 0, finished.err
    spec = tmp_path / f"{name}.yaml"
    spec.write_text(f"{spec.read_text(encoding='utf-8')}metrics: [nonsense]\n", encoding="utf-8")
    assert f"{name}.yaml" in invoke_recbias("plan", name, folder=tmp_path).err  # the file wins


@pytest.mark.parametrize("name", list(list_specs()))
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


def test_init_alone_lists_the_specs(tmp_path: Path) -> None:
    listed = invoke_recbias("init", folder=tmp_path)
    assert listed.code == 0
    assert "papers/children/a3 " in listed.out
    assert listed.out.splitlines()[-1] == "next: recbias init NAME"
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_place_of_a_folder_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "audit").write_text("a file", encoding="utf-8")
    refused = invoke_recbias("init", "audit", folder=tmp_path)
    assert refused.code == 2
    assert "audit: is a file" in refused.err
    assert "wrote" not in refused.out
    assert [path.name for path in tmp_path.iterdir()] == ["audit"]


@pytest.mark.parametrize("name", ["quickstart", "audit", "prompts"])
def test_a_spec_for_a_start_has_its_name_a_fairness_card_and_a_gate(
    name: str, tmp_path: Path
) -> None:
    invoke_recbias("init", name, folder=tmp_path)
    finished = invoke_recbias("run", name, "--quiet", folder=tmp_path)
    assert finished.code == 0
    (manifest,) = (tmp_path / "results" / name).glob("*Z-*/manifest.json")
    checks = json.loads(manifest.read_text(encoding="utf-8"))["checks"]
    assert {check["verdict"] for check in checks} == {"pass"}
    report = manifest.with_name("report.md").read_text(encoding="utf-8")
    assert " by gender: gaps" in report
    assert "| worst off |" in report


def test_the_gate_of_an_audit_fails_for_the_lists_that_treat_groups_unequally(
    tmp_path: Path,
) -> None:
    invoke_recbias("init", "audit", folder=tmp_path)
    options = ("--quiet", "--set", "checks.0.models=[theirs]")
    assert invoke_recbias("run", "audit", *options, folder=tmp_path).code == 3
