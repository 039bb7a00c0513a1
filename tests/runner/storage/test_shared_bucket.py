"""Two runs with one store from two folders: one is killed while it stores its results."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.bucket import Bucket, serve_bucket
from support.commands import invoke_recbias, write_small_spec

RECORD = "stage.json"


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    pytest.importorskip("moto.server")
    with serve_bucket() as bucket:
        yield bucket


def start_run(folder: Path, bucket: Bucket, out: str) -> subprocess.Popen[bytes]:
    """Start a run as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "recbias", *list_words(bucket, out)],
        cwd=folder,
        env={**os.environ, **bucket.variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def list_words(bucket: Bucket, out: str) -> list[str]:
    return ["run", "small.yaml", "--out", out, "--store", bucket.url]


def wait_for_files(bucket: Bucket, n: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the runs have begun to write so many files of results."""
    deadline = time.monotonic() + 120
    while sum(method == "PUT" and "/tmp/" not in path for method, path in bucket.requests) < n:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count_records(bucket: Bucket) -> int:
    written = {path for method, path in bucket.requests if method == "PUT"}
    return sum(path.endswith(RECORD) for path in written)


@pytest.mark.slow
@pytest.mark.parametrize("n_files", [3, 20])
def test_a_run_that_is_killed_while_another_uses_its_store_harms_neither(
    tmp_path: Path, bucket: Bucket, n_files: int
) -> None:
    write_small_spec(tmp_path)
    bucket.pause = 0.03
    with start_run(tmp_path, bucket, "a") as first, start_run(tmp_path, bucket, "b") as second:
        wait_for_files(bucket, n_files, first)
        first.kill()
        assert count_records(bucket) < 15  # in the middle
        assert second.wait(120) == 0
    bucket.pause = 0.0
    resumed = invoke_recbias(*list_words(bucket, "a"), folder=tmp_path)
    assert resumed.code == 0, resumed.err
    n_written = sum(method == "PUT" for method, _ in bucket.requests)
    reader = invoke_recbias(*list_words(bucket, "c"), folder=tmp_path)
    assert reader.code == 0, reader.err
    assert "damaged" not in resumed.err + reader.err
    # what another machine reads is whole: it computes and writes nothing but the check's file
    assert sum(method == "PUT" for method, _ in bucket.requests) - n_written <= 2
    alone = invoke_recbias("run", "small.yaml", "--out", "d", folder=tmp_path)
    assert alone.code == 0, alone.err
    tables = {(tmp_path / out / "small/latest/metrics.csv").read_bytes() for out in "abcd"}
    assert len(tables) == 1
