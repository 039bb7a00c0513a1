from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from recbias.core.machine.limited_disks import lock_file, write_to_disk

fcntl = pytest.importorskip("fcntl")


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_what_a_disk_cannot_do_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(os, "fsync", refuse)
    with (tmp_path / "file").open("w") as stream:
        lock_file(stream.fileno())
        lock_file(stream.fileno(), waits=False)
        write_to_disk(stream.fileno())


def test_a_disk_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        write_to_disk(1)


def test_a_locked_file_is_not_locked_again(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as first, (tmp_path / "file").open("w") as second:
        lock_file(first.fileno())
        with pytest.raises(BlockingIOError):
            lock_file(second.fileno(), waits=False)
    with (tmp_path / "file").open("w") as third:
        lock_file(third.fileno(), waits=False)
