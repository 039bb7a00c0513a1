from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from recbias.core.errors import MissingFile
from recbias.core.files import has_file, open_input


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


def test_a_folder_without_permission_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(path: Path) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("recbias.core.files.os.stat", deny)
    with pytest.raises(MissingFile, match="Permission denied"):
        has_file(tmp_path / "x")
