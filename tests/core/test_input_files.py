from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from recbias.core.errors import MissingFile
from recbias.core.input_files import has_file, opened_input, reading


def folder(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def circle(path: Path) -> None:
    path.symlink_to(path)


ODD = [(folder, "folder"), (pipe, "pipe"), (circle, "symbolic links")]


@pytest.mark.parametrize(("put", "reason"), ODD)
def test_what_is_no_file_is_refused_and_never_waited_for(
    put: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    put(path)
    for look in (has_file, lambda path: opened_input(path).__enter__()):
        with pytest.raises(MissingFile, match=reason) as caught:
            look(path)
        assert caught.value.where == str(path)
        assert caught.value.remedy


@pytest.mark.parametrize("name", ["nothing", "file/x", "x" * 5000, "nul\0"])
def test_where_nothing_is_there_is_no_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not has_file(tmp_path / name)


def test_a_file_and_a_link_to_it_are_there(tmp_path: Path) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_bytes(b"abc")
    link.symlink_to(path)
    assert has_file(path)
    with opened_input(link) as stream:
        assert stream.read() == b"abc"


def test_a_file_that_goes_away_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no such file"), opened_input(tmp_path / "x"):
        pass


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.EACCES, "chmod"), (errno.EIO, "copy"), (errno.EBUSY, "plain")]
)
def test_what_the_system_says_is_told_with_a_remedy(
    number: int, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(MissingFile, match="cannot be read: ") as caught, reading(tmp_path):
        raise OSError(number, os.strerror(number))
    assert os.strerror(number) in str(caught.value)
    assert remedy in caught.value.remedy


def test_a_folder_that_nobody_may_look_into_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("recbias.core.input_files.os.stat", refuse)
    with pytest.raises(MissingFile, match="Permission denied"):
        has_file(tmp_path / "x")
