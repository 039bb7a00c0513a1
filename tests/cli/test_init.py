"""``recbias init`` writes specs that run, and never overwrites."""

from __future__ import annotations

from pathlib import Path

import pytest

from recbias.api import read_experiment
from recbias.config.packaged_specs import ALIASES, list_specs
from support.commands import invoke_recbias


@pytest.mark.parametrize("name", ["quickstart", *ALIASES])
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
    assert read_experiment(tmp_path / f"{name}.yaml").name


def test_init_never_overwrites(tmp_path: Path) -> None:
    assert invoke_recbias("init", "audit", folder=tmp_path).code == 0
    again = invoke_recbias("init", "audit", folder=tmp_path)
    assert again.code == 0
    assert "wrote" not in again.out
    table = tmp_path / "own-lists" / "items.csv"
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


def test_an_unknown_spec_suggests_the_nearest(tmp_path: Path) -> None:
    refused = invoke_recbias("init", "adit", folder=tmp_path)
    assert refused.code == 2
    assert "help: did you mean audit?" in refused.err


def test_a_folder_that_cannot_be_written_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "own-lists").write_text("a file", encoding="utf-8")
    refused = invoke_recbias("init", "audit", folder=tmp_path)
    assert refused.code == 2
    assert "own-lists" in refused.err
