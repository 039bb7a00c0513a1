from __future__ import annotations

import importlib
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


def test_a_module_without_a_compiled_file_is_taken_as_it_is(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("N = 1\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    require_loaded_version(path)


def test_a_module_that_was_not_imported_is_taken_as_it_is(tmp_path: Path) -> None:
    require_loaded_version(tmp_path / "other.py")
