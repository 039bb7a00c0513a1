from __future__ import annotations

from pathlib import Path

import pytest

from recbias.core.context import collect_warnings, warn
from recbias.core.errors import ChangedFile, MalformedLine, MissingFile
from recbias.models.given import read_once

calls: list[str] = []


def read(path: Path, case: str = "as it is") -> str:
    calls.append(case)
    if not path.is_file():
        raise MissingFile(f"no file {path.name}")
    text = path.read_text(encoding="utf-8")
    if not text:
        raise MalformedLine("empty", where=str(path))
    warn(f"{path.name} was read")
    return text.upper() if case == "upper" else text


@pytest.fixture(autouse=True)
def clear_calls() -> None:
    calls.clear()


@pytest.mark.usefixtures("stage_warnings")
def test_a_file_is_read_once_and_warns_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one", encoding="utf-8")
    for _ in range(2):
        with collect_warnings() as warnings:
            assert read_once(read, path) == "one"
        assert warnings == ["a.txt was read"]
    assert len(calls) == 1
    assert read_once(read, path, "upper") == "ONE"
    assert len(calls) == 2


@pytest.mark.usefixtures("stage_warnings")
def test_a_file_of_the_same_name_and_size_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "b.txt"
    for text in ("one", "two"):
        path.write_text(text, encoding="utf-8")
        assert read_once(read, path) == text


def read_late(path: Path) -> str:
    path.write_text("two", encoding="utf-8")
    return read(path)


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "e.txt"
    path.write_text("one", encoding="utf-8")
    with pytest.raises(ChangedFile, match=r"e\.txt changed while the run was reading it"):
        read_once(read_late, path)
