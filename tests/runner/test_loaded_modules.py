from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recbias.core.errors import ChangedFile
from recbias.runner.loaded_modules import require_loaded_version

NAME = "a_module_that_changes"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / f"{NAME}.py"
    path.write_text("N = 40\n")
    importlib.import_module(NAME)
    yield path
    del sys.modules[NAME]


def test_a_module_that_changed_after_its_import_is_refused(path: Path) -> None:
    require_loaded_version(path)
    path.write_text("N = 1\n")
    with pytest.raises(ChangedFile, match=r"a_module_that_changes\.py changed after"):
        require_loaded_version(path)
    importlib.reload(sys.modules[NAME])
    require_loaded_version(path)


@pytest.mark.parametrize("source", ["N = 40\n", "# The number.\n\nN = 40  # so many\n"])
def test_a_module_that_runs_the_same_is_not_refused(path: Path, source: str) -> None:
    path.write_text(source)
    os.utime(path, (1, 1))
    require_loaded_version(path)


@pytest.mark.parametrize("source", ["N = 40.0\n", "N =\n", "M = 40\n"])
def test_a_module_with_other_code_is_refused(path: Path, source: str) -> None:
    path.write_text(source)
    os.utime(path, (1, 1))
    with pytest.raises(ChangedFile, match="changed after"):
        require_loaded_version(path)


def test_the_compiled_file_of_another_loader_says_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Loader(importlib.machinery.SourceFileLoader):
        """One that rewrites assertions, as that of pytest does."""

    monkeypatch.setattr(sys.modules[NAME].__spec__, "loader", Loader(NAME, str(path)))
    path.write_text("N = 1\n")
    require_loaded_version(path)


def test_a_module_without_a_compiled_file_is_taken_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("N = 1\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    require_loaded_version(path)


def test_a_module_that_was_not_imported_is_taken_as_it_is(tmp_path: Path) -> None:
    require_loaded_version(tmp_path / "other.py")
