"""A store with a copy at a URL: folders, S3 on a server of this machine, and fsspec."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recbias
from recbias.core.errors import ConfigError, Contradiction, UnknownName, Unwritable
from recbias.core.records import Stored
from recbias.runner.execution.stage_records import Silent
from recbias.runner.storage import remote_store
from recbias.runner.storage.records import RECORD
from recbias.runner.storage.remote_store import RemoteStore, open_store, open_url
from support.commands import invoke_recbias
from support.specs import make_small_spec

DIGEST = "ab" + 62 * "0"
STORED = Stored("fit", "fit", {}, 1.0, 2.0, (), {})
STATE = {"x": np.arange(3)}


class Computed(Silent):
    """Counts the stages that are computed."""

    def __init__(self) -> None:
        self.count = 0

    def finished(self, record: Any) -> None:
        self.count += not record.reused


def make_stores(tmp_path: Path) -> tuple[RemoteStore, RemoteStore]:
    """Return the stores of two machines, with one URL."""
    stores = [open_store(tmp_path / name / "store", f"file://{tmp_path}/shared") for name in "ab"]
    for store in stores:
        store.prepare()
    return stores[0], stores[1]  # type: ignore[return-value]


def test_another_machine_reads_what_one_has_stored(tmp_path: Path) -> None:
    first, second = make_stores(tmp_path)
    assert not second.has(DIGEST)
    assert second.load(DIGEST) is None
    first.save(DIGEST, STATE, STORED)
    assert second.has(DIGEST)
    record = second.record(DIGEST)
    assert record is not None
    assert record.stage == "fit"
    assert second.load(DIGEST)["x"].tolist() == [0, 1, 2]
    shutil.rmtree(tmp_path / "shared")
    assert second.load(DIGEST)["x"].tolist() == [0, 1, 2]  # from its own folder


def test_a_record_of_another_result_at_the_url_is_none(tmp_path: Path) -> None:
    first, second = make_stores(tmp_path)
    first.save(DIGEST, STATE, STORED)
    other = "cd" + 62 * "1"
    shared = tmp_path / "shared"
    shutil.copytree(shared / DIGEST[:2] / DIGEST, shared / other[:2] / other)
    assert not second.has(other)
    assert second.load(other) is None
    second.save(other, {"x": np.arange(5)}, STORED)
    assert first.load(other)["x"].tolist() == [0, 1, 2, 3, 4]


def test_a_result_without_its_record_is_incomplete(tmp_path: Path) -> None:
    # What a machine leaves that dies while it copies: all files but the record.
    first, second = make_stores(tmp_path)
    first.save(DIGEST, STATE, STORED)
    (tmp_path / "shared" / "ab" / DIGEST / RECORD).unlink()
    assert not second.has(DIGEST)
    assert second.load(DIGEST) is None


def test_a_damaged_copy_is_stored_again(tmp_path: Path) -> None:
    first, second = make_stores(tmp_path)
    first.save(DIGEST, STATE, STORED)
    folder = tmp_path / "shared" / "ab" / DIGEST
    (data,) = [path for path in folder.iterdir() if path.name != RECORD]
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
    (data,) = [path for path in second.path(DIGEST).iterdir() if path.name != RECORD]
    data.write_bytes(b"x" * data.stat().st_size)
    with pytest.warns(UserWarning, match="was damaged"):
        assert second.load(DIGEST)["x"].tolist() == [0, 1, 2]


def test_results_of_a_fresh_run_replace_those_at_the_url(tmp_path: Path) -> None:
    first, second = make_stores(tmp_path)
    first.save(DIGEST, STATE, STORED)
    first.save(DIGEST, {"x": np.arange(4)}, STORED)
    assert second.load(DIGEST)["x"].tolist() == [0, 1, 2]
    first.save(DIGEST, {"x": np.arange(4)}, STORED, replace=True)
    shutil.rmtree(second.folder)
    assert second.load(DIGEST)["x"].tolist() == [0, 1, 2, 3]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a folder in a bucket of an S3 server on this machine."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "planted-secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    open_url.cache_clear()
    try:
        files, _ = open_url("s3://results?allow_bucket_creation=true")
        files.create_dir("results")
        yield "s3://results/team"
    finally:
        open_url.cache_clear()
        server.stop()


@pytest.mark.rotating
def test_a_run_by_s3_has_the_same_metrics_and_is_computed_once(
    tmp_path: Path, bucket: str
) -> None:
    spec = make_small_spec()
    first, second = Computed(), Computed()
    a = recbias.run(spec, out=tmp_path / "a", store=bucket, observer=first)
    b = recbias.run(spec, out=tmp_path / "b", store=bucket, observer=second, workers=2)
    assert first.count > 0
    assert second.count == 0
    alone = recbias.run(spec, out=tmp_path / "c")
    tables = {(run.folder / "metrics.csv").read_bytes() for run in (a, b, alone)}
    assert len(tables) == 1
    written = "".join(path.read_text(errors="ignore") for path in a.folder.rglob("*.json"))
    assert "planted-secret" not in written


def test_a_bucket_that_is_absent_is_one_error(tmp_path: Path, bucket: str) -> None:
    store = open_store(tmp_path / "store", bucket.replace("results", "absent"))
    with pytest.raises(Unwritable, match=r"cannot be written: .*bucket"):
        store.prepare()


def test_fsspec_opens_other_urls(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    stores = [open_store(tmp_path / name, "memory://recbias/test") for name in "ab"]
    stores[0].prepare()
    stores[0].save(DIGEST, STATE, STORED)
    assert stores[1].load(DIGEST)["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("url", "kind", "message"),
    [
        ("results", ConfigError, "is not a URL"),
        ("s3:bucket", ConfigError, "is not a URL"),
        ("s3://", ConfigError, "is not a URL"),
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


def test_a_slow_store_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_store, "SLOW_SECONDS", 0.0)
    with pytest.warns(UserWarning, match="is slow: 0.0 s to write, read and remove"):
        open_store(tmp_path / "store", f"file://{tmp_path}/shared").prepare()
