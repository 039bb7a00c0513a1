from __future__ import annotations

import sys
from pathlib import Path

import pytest

from recbias.core.errors import MissingExtra, MissingFile
from recbias.core.packages import is_installed
from recbias.models.recbole import VARIABLE, RecBole, find_interpreter, require_interpreter
from support.models.fake_recbole import write_fake


def test_the_named_python_is_asked_for_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write_fake(tmp_path / "python")
    monkeypatch.setenv(VARIABLE, str(program))
    interpreter = find_interpreter()
    assert interpreter is not None
    assert interpreter.path == str(program)
    assert [path.name for path in interpreter.metadata] == ["METADATA"]
    assert list(RecBole(model="BPR").model_files()) == list(interpreter.metadata)
    assert RecBole(model="BPR").libraries_now() == ()


@pytest.mark.skipif(is_installed("recbole"), reason="RecBole is installed")
def test_without_a_named_python_the_package_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert find_interpreter() is None
    assert RecBole(model="BPR").libraries_now() == ("recbole",)
    assert RecBole(model="BPR").model_files() == ()
    with pytest.raises(MissingExtra) as raised:
        require_interpreter("recbole/BPR")
    assert raised.value.lines() == [
        "error: recbole/BPR needs the package 'recbole', which is not installed",
        f"help: pip install 'recbias[recbole]', or set {VARIABLE} to a Python that has it",
    ]


def test_a_python_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/python")
    with pytest.raises(MissingFile, match=f"{VARIABLE}: no program '/nowhere/python'"):
        find_interpreter()


@pytest.mark.parametrize("text", ["echo no JSON", "echo '[1]'", "exit 3"])
def test_a_program_that_is_no_python_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(program))
    with pytest.raises(MissingFile, match="does not run as a Python"):
        find_interpreter()


@pytest.mark.skipif(is_installed("recbole"), reason="RecBole is installed")
def test_a_python_without_recbole_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, sys.executable)
    with pytest.raises(MissingExtra, match="has no package recbole"):
        find_interpreter()
