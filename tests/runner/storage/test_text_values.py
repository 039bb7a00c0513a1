from __future__ import annotations

import multiprocessing
import os
import signal
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.runner.store import VALUES, Store, TextValues, find_values

ROWS = np.array([[0.1, np.nan, 1 / 3], [-1.0, 2e-17, np.inf]])


def open_values(folder: Path, detector: str = "d", run_id: str = "") -> TextValues:
    return find_values(Store(folder), run_id)(detector)


def test_values_are_read_as_they_were_written(tmp_path: Path) -> None:
    open_values(tmp_path).append(["a", "b"], ROWS)
    stored = open_values(tmp_path)
    np.testing.assert_array_equal(stored.find("a"), ROWS[0])
    np.testing.assert_array_equal(stored.find("b"), ROWS[1])
    assert stored.find("c") is None


@pytest.mark.parametrize("damage", ["truncated", "changed", "garbage", "empty"])
def test_damaged_lines_are_skipped_and_said(tmp_path: Path, damage: str) -> None:
    open_values(tmp_path).append(["a", "b"], ROWS)
    (path,) = (tmp_path / VALUES).iterdir()
    content = path.read_bytes()
    changes = {
        "truncated": content[:-20],
        "changed": content[:-12] + bytes([content[-12] ^ 1]) + content[-11:],
        "garbage": content.splitlines(keepends=True)[0] + b"\xff\x00 [[[\n",
        "empty": content.splitlines(keepends=True)[0] + b"\n",
    }
    path.write_bytes(changes[damage])
    stored = open_values(tmp_path)
    with collect_warnings() as messages:
        np.testing.assert_array_equal(stored.find("a"), ROWS[0])
        assert stored.find("b") is None
    assert messages == ["1 damaged line(s) of the stored labels are computed again"]
    stored.append(["b"], ROWS[1:])
    with collect_warnings():
        np.testing.assert_array_equal(open_values(tmp_path).find("b"), ROWS[1])


def _append_many(folder: Path, name: str, n: int) -> None:
    stored = open_values(folder)
    for at in range(n):
        stored.append([f"{name}{at}"], np.full((1, 3), float(at)))


def test_two_processes_append_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append_many, args=(tmp_path, name, 20)) for name in "xy"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    stored = open_values(tmp_path)
    for name in "xy":
        for at in range(20):
            np.testing.assert_array_equal(stored.find(f"{name}{at}"), np.full(3, float(at)))


def test_what_a_killed_process_stored_is_kept(tmp_path: Path) -> None:
    worker = multiprocessing.get_context("fork").Process(
        target=_append_many, args=(tmp_path, "x", 10**6)
    )
    worker.start()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and open_values(tmp_path).find("x3") is None:
        time.sleep(0.01)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join()
    stored = open_values(tmp_path)
    with collect_warnings():
        for at in range(4):
            np.testing.assert_array_equal(stored.find(f"x{at}"), np.full(3, float(at)))


@pytest.mark.parametrize("body", [b"1", b"[]", b'["a", "b"]', b'["a", {}]', b"[" * 10**5, None])
def test_values_of_another_form_are_skipped(tmp_path: Path, body: bytes | None) -> None:
    path = tmp_path / VALUES / "d-1.values"
    path.parent.mkdir()
    if body is None:
        os.mkfifo(path)
    else:
        path.write_bytes(b"%08x %s\n" % (zlib.crc32(body), body))
    with collect_warnings() as warnings:
        assert open_values(tmp_path).find("a") is None
    assert len(warnings) == 1
