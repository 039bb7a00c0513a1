from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

import recbias
from recbias.core.context import StageRecord
from recbias.runner.plan import Observer
from support.commands import invoke_recbias
from support.specs import make_small_spec

ENDING = '''
import ctypes
import os
from dataclasses import dataclass

from recbias.models.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Ending(ItemKNN):
    """ItemKNN in a library that ends its process, as OpenBLAS does without memory."""

    def fit(self, data, rng):
        if self.neighbors == 1:
            ctypes.CDLL(None)._exit(127)  # as a library does
        os.abort()
'''


BLOCKING = '''
from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from recbias.models.knn import ItemKNN


@dataclass(frozen=True, kw_only=True)
class Blocking(ItemKNN):
    """ItemKNN whose training never ends."""

    def fit(self, data, rng):
        with Path(__file__).with_name("pipe").open("w") as pipe:
            print("fitting", file=pipe, flush=True)
            threading.Event().wait()
'''


class RecordingObserver(Observer):
    def __init__(self) -> None:
        self.records: list[StageRecord] = []

    def finished(self, record: StageRecord) -> None:
        self.records.append(record)


@pytest.mark.parametrize("fresh", [False, True])
def test_processes_give_the_same_metrics_and_report_every_stage(
    tmp_path: Path, fresh: bool
) -> None:
    sequential = recbias.run(make_small_spec(), out=tmp_path / "one")
    observer = RecordingObserver()
    parallel = recbias.run(
        make_small_spec(), out=tmp_path / "two", workers=2, fresh=fresh, observer=observer
    )
    expected_bytes, actual_bytes = [
        (run.folder / "metrics.csv").read_bytes() for run in (sequential, parallel)
    ]
    assert expected_bytes == actual_bytes
    assert {record.stage for record in observer.records} >= {
        "fit ItemKNN",
        "measure nDCG of MostPop",
    }


def test_a_library_that_ends_its_worker_is_one_failed_stage(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(ENDING)
    ending = [
        {"name": f"{tmp_path}/own.py:Ending", "neighbors": n, "label": f"n{n}"} for n in (1, 2)
    ]
    spec = make_small_spec(models=["MostPop", *ending], metrics=["nDCG"], tests=[])
    (tmp_path / "x.yaml").write_text(json.dumps(spec))
    result = invoke_recbias("run", "x.yaml", "--workers", "2", folder=tmp_path)
    assert result.code == 1
    failed = [line for line in result.err.splitlines() if line.startswith("failed: ")]
    assert sorted(failed) == [  # the two workers die in either order
        "failed: fit n1: the worker process died (exit code 127)",
        "failed: fit n2: the worker process died (signal 6)",
    ]
    assert "MostPop" in result.out


def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(BLOCKING)
    spec = make_small_spec(models=["MostPop", {"name": "./own.py:Blocking"}])
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-m", "recbias", "run", "spec.json", "--workers", "2", "-q"]
    with (
        subprocess.Popen(command, cwd=tmp_path) as process,
        (tmp_path / "pipe").open("rb", buffering=0) as pipe,
    ):
        assert pipe.readline() == b"fitting\n"
        process.kill()
        # the pipe closes when the worker at its other end exits
        assert select.select([pipe], [], [], 60)[0]
        assert pipe.read() == b""
