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


SOURCE = """\
from functools import cache

N = 40
STATE = {}


class A:
    WIDTH = 1

    @property
    def size(self):
        return N

    def grow(self, n):
        return [each + n for each in range(3)]


@cache
def compute(x):
    def inner():
        return x + 1

    return inner()


STATE["calls"] = compute(1)
"""


@pytest.fixture
def unwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module without a compiled file, which has been imported."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / f"{NAME}.py"
    path.write_text(SOURCE)
    importlib.import_module(NAME)
    yield path
    del sys.modules[NAME]


@pytest.mark.parametrize("comment", ["", "# More.\n\n"])
def test_a_module_without_a_compiled_file_runs_what_its_source_says(
    unwritten: Path, comment: str
) -> None:
    unwritten.write_text(comment + SOURCE)
    sys.modules[NAME].STATE["calls"] = 7
    require_loaded_version(unwritten)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("N = 40", "N = 41"),
        ("N = 40", "N = 40.0"),
        ("return N", "return N + 1"),
        ("each + n", "each - n"),
        ("x + 1", "x + 2"),
        ("@cache\n", "def other(x):\n    return 0\n\n\n@cache\n"),
        ("def compute(x)", "def renamed(x)"),
        ("class A:", "class A:\n    def more(self):\n        return 1\n\n"),
        ("class A:", "class A"),
        ("WIDTH = 1", "WIDTH = 2"),
    ],
)
def test_a_change_is_found_without_a_compiled_file(unwritten: Path, old: str, new: str) -> None:
    unwritten.write_text(SOURCE.replace(old, new))
    with pytest.raises(ChangedFile, match=r"a_module_that_changes\.py changed after"):
        require_loaded_version(unwritten)


def test_names_that_a_module_assigns_in_other_ways_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / "assigned_otherwise.py"
    path.write_text(
        "dumps = None\nfrom json import dumps\nN = 1\nN += 1\nM = None\n"
        "def M():\n    return 1\ndef gone():\n    return 1\ndel gone\nCOUNT = 0\n"
        "def count():\n    global COUNT\n    COUNT += 1\ncount()\n"
        "K = 1\nfor K in range(3):\n    pass\n"
        "import enum, dataclasses, typing\nclass E(enum.Enum):\n    A = 1\n"
        "@dataclasses.dataclass(frozen=True, slots=True)\nclass D:\n    n: int = 3\n"
        "    def __private(self):\n        return 1\n"
        "    @property\n    def x(self):\n        return 1\n"
        "class T(typing.NamedTuple):\n    n: int = 3\n    def size(self):\n        return 2\n"
        "from dataclasses import dataclass\n@dataclass\nclass F:\n    n: int = 3\n"
    )
    importlib.import_module("assigned_otherwise")
    require_loaded_version(path)
    del sys.modules["assigned_otherwise"]


def test_a_module_that_was_not_imported_is_taken_as_it_is(tmp_path: Path) -> None:
    require_loaded_version(tmp_path / "other.py")
