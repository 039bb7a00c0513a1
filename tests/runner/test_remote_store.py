from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recbias
from recbias.core.context import Stored
from recbias.core.errors import ConfigError, Contradiction, UnknownName, Unwritable
from recbias.runner.codecs import ARRAYS
from recbias.runner.plan import Observer
from recbias.runner.store_url import RemoteStore, open_store
from support.bucket import Bucket, serve_bucket
from support.commands import invoke_recbias, write_small_spec
from support.specs import make_small_spec

DIGEST = "ab" + 62 * "0"
STORED = Stored("fit", "fit", {}, 1.0, 2.0, (), {})
STATE = {"x": np.arange(3)}


class Computed(Observer):
    """Counts the stages that are computed, and those that are reused."""

    def __init__(self) -> None:
        self.count = self.reused = 0

    def finished(self, record: Any) -> None:
        self.count += not record.reused
        self.reused += record.reused


def make_stores(tmp_path: Path) -> tuple[RemoteStore, RemoteStore]:
    """Return the stores of two machines, with one URL."""
    stores = [open_store(tmp_path / name / "store", f"file://{tmp_path}/shared") for name in "ab"]
    for store in stores:
        store.prepare()
    return stores[0], stores[1]


def test_another_machine_reads_what_one_has_stored(tmp_path: Path) -> None:
    first, second = make_stores(tmp_path)
    assert not second.has(DIGEST)
    assert second.load(DIGEST) is None
    first.save(DIGEST, STATE, STORED)
    second.look_again(DIGEST)
    assert second.has(DIGEST)
    record = second.record(DIGEST)
    assert record is not None
    assert record.stage == "fit"
    assert second.load(DIGEST)["x"].tolist() == [0, 1, 2]
    shutil.rmtree(tmp_path / "shared")
    assert second.load(DIGEST)["x"].tolist() == [0, 1, 2]  # from its own folder


def test_a_damaged_copy_is_stored_again(tmp_path: Path) -> None:
    first, second = make_stores(tmp_path)
    first.save(DIGEST, STATE, STORED)
    folder = tmp_path / "shared" / "ab" / DIGEST
    data = folder / ARRAYS
    intact = data.read_bytes()
    data.write_bytes(intact[:-1] + bytes([intact[-1] ^ 1]))
    with pytest.warns(UserWarning, match="was damaged and is computed again"):
        assert second.load(DIGEST) is None
    assert not second.has(DIGEST)
    second.save(DIGEST, STATE, STORED)
    assert data.read_bytes() == intact


def test_a_damaged_result_of_the_folder_is_copied_again(tmp_path: Path) -> None:
    first, second = make_stores(tmp_path)
    first.save(DIGEST, STATE, STORED)
    assert second.load(DIGEST) is not None
    data = second.path(DIGEST) / ARRAYS
    data.write_bytes(b"x" * data.stat().st_size)
    with pytest.warns(UserWarning, match="was damaged"):
        assert second.load(DIGEST)["x"].tolist() == [0, 1, 2]


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    pytest.importorskip("moto.server")
    with serve_bucket() as bucket:
        yield bucket


MOST_REQUESTS = 8.0
"""The requests for each stage that is computed and stored, of which four are its files."""

MOST_REQUESTS_OF_A_READER = 10.0
"""The requests for each stage of which another machine reads the record and most results."""


def test_a_run_sends_few_requests(tmp_path: Path, bucket: Bucket) -> None:
    spec, first, second = make_small_spec(), Computed(), Computed()
    recbias.run(spec, out=tmp_path / "a", store=bucket.url, observer=first)
    n_files = len([*(tmp_path / "a/store").glob("??/*/*")])
    n_first = len(bucket.requests)
    assert first.count == 11
    # each stage is looked up for the plan, before it is computed and before it is stored
    assert n_first <= 3 * first.count + n_files + 6
    assert n_first <= MOST_REQUESTS * first.count
    assert max(Counter(bucket.requests).values()) <= 3
    recbias.run(spec, out=tmp_path / "b", store=bucket.url, observer=second)
    assert second.count == 0
    assert second.reused == 9
    assert len(bucket.requests) - n_first <= MOST_REQUESTS_OF_A_READER * second.reused
    # what is in the folder is not copied again, after two requests whether the URL has it
    n_requests = len(bucket.requests)
    recbias.run(spec, out=tmp_path / "b", store=bucket.url)
    assert len(bucket.requests) - n_requests <= 6 + 2 * (second.reused + 2)


class OtherMachine(Computed):
    """Runs the spec on another machine when the first stage is computed."""

    def __init__(self, run: Callable[[], object]) -> None:
        super().__init__()
        self.run, self.has_run = run, False

    def started(self, stage: Any) -> None:
        if not self.has_run:
            self.has_run = True
            self.run()


def test_what_another_machine_stored_after_the_plan_is_not_computed_again(tmp_path: Path) -> None:
    url, spec, first = f"file://{tmp_path}/shared", make_small_spec(), Computed()

    def run_elsewhere() -> None:
        recbias.run(spec, out=tmp_path / "b", store=url, observer=first)

    second = OtherMachine(run_elsewhere)
    recbias.run(spec, out=tmp_path / "a", store=url, observer=second)
    assert first.count == 11
    assert second.count == 1


def test_a_run_by_s3_has_the_same_metrics_and_is_computed_once(
    tmp_path: Path, bucket: Bucket
) -> None:
    spec = make_small_spec()
    first, second = Computed(), Computed()
    a = recbias.run(spec, out=tmp_path / "a", store=bucket.url, observer=first)
    b = recbias.run(spec, out=tmp_path / "b", store=bucket.url, observer=second, workers=2)
    assert first.count > 0
    assert second.count == 0
    alone = recbias.run(spec, out=tmp_path / "c")
    tables = {(run.folder / "metrics.csv").read_bytes() for run in (a, b, alone)}
    assert len(tables) == 1
    written = "".join(path.read_text(errors="ignore") for path in a.folder.rglob("*.json"))
    assert "planted-secret" not in written


class Unreachable:
    """A file system of pyarrow that asks for the region of a bucket, and gets no answer."""

    @staticmethod
    def from_uri(url: str) -> None:
        raise OSError(f"When resolving region for bucket {url!r}: could not resolve hostname")


def test_a_bucket_whose_region_is_not_found_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyarrow.fs.FileSystem", Unreachable)
    with pytest.raises(Unwritable, match=r"s3://absent/x: it cannot be opened: .*region") as error:
        open_store(tmp_path / "store", "s3://absent/x")
    assert "network" in error.value.remedy


@pytest.mark.parametrize(
    ("url", "kind", "message"),
    [
        ("results", ConfigError, "is not a URL"),
        ("s3:bucket", ConfigError, "is not a URL"),
        ("s3://key:secret@bucket/x", Contradiction, "holds a key or password"),
        ("zzz://bucket/x", UnknownName, "zzz"),
    ],
)
def test_bad_urls_are_refused(
    tmp_path: Path, url: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        open_store(tmp_path / "store", url)
    assert caught.value.remedy  # type: ignore[attr-defined]
    assert "secret" not in str(caught.value)


def test_a_store_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    url = f"file://{tmp_path}/file/store"
    result = invoke_recbias("run", "quickstart", "--store", url, folder=tmp_path)
    assert result.code == 2
    assert f"error: {url}: it cannot be written" in result.err
    assert "fit" not in result.err


SHARED_BUCKET_RECORD = "stage.json"


@pytest.fixture
def bucket_of_shared_bucket() -> Iterator[Bucket]:
    pytest.importorskip("moto.server")
    with serve_bucket() as bucket_of_shared_bucket:
        yield bucket_of_shared_bucket


def start_run(folder: Path, bucket_of_shared_bucket: Bucket, out: str) -> subprocess.Popen[bytes]:
    """Start a run as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "recbias", *list_words(bucket_of_shared_bucket, out)],
        cwd=folder,
        env={**os.environ, **bucket_of_shared_bucket.variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def list_words(bucket_of_shared_bucket: Bucket, out: str) -> list[str]:
    return ["run", "small.yaml", "--out", out, "--store", bucket_of_shared_bucket.url]


def wait_for_files(
    bucket_of_shared_bucket: Bucket, n: int, process: subprocess.Popen[bytes]
) -> None:
    """Wait until the runs have begun to write so many files of results."""
    deadline = time.monotonic() + 120
    while (
        sum(
            method == "PUT" and "/tmp/" not in path
            for method, path in bucket_of_shared_bucket.requests
        )
        < n
    ):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count_records(bucket_of_shared_bucket: Bucket) -> int:
    written = {path for method, path in bucket_of_shared_bucket.requests if method == "PUT"}
    return sum(path.endswith(SHARED_BUCKET_RECORD) for path in written)


@pytest.mark.slow
@pytest.mark.parametrize("n_files", [3, 20])
def test_a_run_that_is_killed_while_another_uses_its_store_harms_neither(
    tmp_path: Path, bucket_of_shared_bucket: Bucket, n_files: int
) -> None:
    write_small_spec(tmp_path)
    bucket_of_shared_bucket.pause = 0.03
    with (
        start_run(tmp_path, bucket_of_shared_bucket, "a") as first,
        start_run(tmp_path, bucket_of_shared_bucket, "b") as second,
    ):
        wait_for_files(bucket_of_shared_bucket, n_files, first)
        first.kill()
        assert count_records(bucket_of_shared_bucket) < 15  # in the middle
        assert second.wait(120) == 0
    bucket_of_shared_bucket.pause = 0.0
    resumed = invoke_recbias(*list_words(bucket_of_shared_bucket, "a"), folder=tmp_path)
    assert resumed.code == 0, resumed.err
    n_written = sum(method == "PUT" for method, _ in bucket_of_shared_bucket.requests)
    reader = invoke_recbias(*list_words(bucket_of_shared_bucket, "c"), folder=tmp_path)
    assert reader.code == 0, reader.err
    assert "damaged" not in resumed.err + reader.err
    # what another machine reads is whole: it computes and writes nothing but the check's file
    assert sum(method == "PUT" for method, _ in bucket_of_shared_bucket.requests) - n_written <= 2
    alone = invoke_recbias("run", "small.yaml", "--out", "d", folder=tmp_path)
    assert alone.code == 0, alone.err
    tables = {(tmp_path / out / "small/latest/metrics.csv").read_bytes() for out in "abcd"}
    assert len(tables) == 1
