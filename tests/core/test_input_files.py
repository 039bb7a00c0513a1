from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from recbias.core.errors import MissingFile
from recbias.core.files import convert_read_errors, has_file, open_input


def make_folder(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "reason"),
    [(make_folder, "folder"), (make_pipe, "pipe"), (make_loop, "symbolic links")],
)
def test_a_path_that_is_no_file_is_an_error_and_does_not_block(
    make: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    make(path)
    for read in (has_file, lambda path: open_input(path).__enter__()):
        with pytest.raises(MissingFile, match=reason) as caught:
            read(path)
        assert caught.value.where == str(path)
        assert caught.value.remedy


@pytest.mark.parametrize("name", ["nothing", "file/x", "x" * 5000, "nul\0"])
def test_an_absent_path_is_no_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not has_file(tmp_path / name)


def test_a_file_and_a_link_to_it_are_files(tmp_path: Path) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_bytes(b"abc")
    link.symlink_to(path)
    assert has_file(path)
    with open_input(link) as stream:
        assert stream.read() == b"abc"


def test_an_absent_file_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="no such file"), open_input(tmp_path / "x"):
        pass


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.EACCES, "chmod"), (errno.EIO, "copy"), (errno.EBUSY, "plain")]
)
def test_an_error_of_the_operating_system_has_a_remedy(
    number: int, remedy: str, tmp_path: Path
) -> None:
    with (
        pytest.raises(MissingFile, match="cannot be read: ") as caught,
        convert_read_errors(tmp_path),
    ):
        raise OSError(number, os.strerror(number))
    assert os.strerror(number) in str(caught.value)
    assert remedy in caught.value.remedy


def test_a_folder_without_permission_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(path: Path) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("recbias.core.files.os.stat", deny)
    with pytest.raises(MissingFile, match="Permission denied"):
        has_file(tmp_path / "x")
