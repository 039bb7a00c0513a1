"""Killed runs: the next run ends with the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import CommandResult, invoke_recbias, write_small_spec
from support.faults.killed_commands import KillServer, open_kill_server
from support.faults.samples import TRIES_ALL, choose_seeds

SPEC = """\
name: small
dataset: {name: demo, n_users: 40, n_items: 30}
split: {name: random, test: 0.2}
k: 5
models: [Random, MostPop, ItemKNN]
metrics: [nDCG, HR, ItemCoverage, {name: nDCG, by: gender, gap: difference}]
tests: [paired_t]
report: {formats: [csv, json, md, latex]}
"""
SLOWER = SPEC.replace("n_users: 40, n_items: 30", "n_users: 600, n_items: 200").replace(
    "ItemKNN]", "ItemKNN, UserKNN, EASE, PureSVD]"
)
FIGURES = ("metrics.csv", "significance.csv", "per_unit.parquet", "lists.parquet")
RUN = ("run", "small.yaml")
KINDS = (("first",), ("fresh",), ("first", "again"))
"""What is killed: the first run, one with ``--fresh`` after a finished one, a resumed one too."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillServer]:
    folder = tmp_path_factory.mktemp("warm")
    write_small_spec(folder, SPEC)
    with open_kill_server(folder) as kill_server:
        yield kill_server


@pytest.fixture(scope="module")
def counted(server: KillServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Return the folder of a whole run, and the changes that it made to its results."""
    folder = tmp_path_factory.mktemp("counted")
    write_small_spec(folder, SPEC)
    code, number = server.run(RUN, folder)
    assert code == 0
    assert number > 150
    return folder, number


def read_figures(folder: Path) -> dict[str, bytes]:
    run = folder / "results" / "small" / "latest"
    return {name: (run / name).read_bytes() for name in FIGURES}


def require_whole(folder: Path, result: CommandResult, figures: dict[str, bytes]) -> None:
    """Check that a run ended well, with these figures, and that nothing else is left."""
    assert result.code == 0, result.err
    assert "warning: " not in result.err
    assert read_figures(folder) == figures
    names = {path.name for path in (folder / "results" / "small").iterdir()}
    assert not [name for name in names if name.startswith(".")], names
    listed = invoke_recbias("runs", folder=folder)
    assert (listed.code, listed.err) == (0, "")


@pytest.mark.parametrize("seed", choose_seeds(2, 540))
def test_a_run_killed_before_a_change_is_resumed(
    server: KillServer, counted: tuple[Path, int], tmp_path: Path, seed: int
) -> None:
    whole, n_changes = counted
    rng = random.Random(seed)
    kind = KINDS[seed // n_changes % len(KINDS)] if TRIES_ALL else rng.choice(KINDS)
    last = seed % n_changes if TRIES_ALL else rng.randrange(n_changes)
    if kind == ("fresh",):
        shutil.copytree(whole, tmp_path, symlinks=True, dirs_exist_ok=True)
    write_small_spec(tmp_path, SPEC)
    for step in kind:
        words = (*RUN, "--fresh") if step == "fresh" else RUN
        code, _ = server.run(words, tmp_path, last if step != "again" else rng.randrange(40))
        assert code == -signal.SIGKILL or (step != "first" and code == 0)
    result = invoke_recbias(*RUN, folder=tmp_path)
    require_whole(tmp_path, result, read_figures(whole))


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("slower")
    write_small_spec(folder, SLOWER)
    result = invoke_recbias(*RUN, folder=folder)
    assert result.code == 0, result.err
    return folder


def start_run(folder: Path) -> subprocess.Popen[str]:
    """Start a run with two workers as a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "recbias", *RUN, "--workers", "2"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def list_workers(pid: int) -> list[int]:
    """Return the processes that a run has spawned to train models."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    pids = [int(word) for word in children.read_text().split()] if children.exists() else []
    return [
        child for child in pids if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


@pytest.mark.skipif(not TRIES_ALL, reason="RECBIAS_FAULTS=all")
@pytest.mark.parametrize("seed", range(20))
def test_what_a_killed_worker_did_is_done_by_the_next_run(
    slower: Path, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    write_small_spec(tmp_path, SLOWER)
    with start_run(tmp_path) as process:
        while process.poll() is None and not list_workers(process.pid):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 4))
        workers = list_workers(process.pid) if process.poll() is None else []
        if workers:
            os.kill(rng.choice(workers), signal.SIGKILL)
        _, err = process.communicate(timeout=120)
    assert process.returncode in (0, 1), err
    require_whole(tmp_path, invoke_recbias(*RUN, folder=tmp_path), read_figures(slower))


@pytest.mark.skipif(not TRIES_ALL, reason="RECBIAS_FAULTS=all")
@pytest.mark.parametrize("seed", range(20))
def test_a_run_killed_with_its_workers_is_resumed(slower: Path, tmp_path: Path, seed: int) -> None:
    """The whole process group or, for odd seeds, the main process only."""
    write_small_spec(tmp_path, SLOWER)
    with start_run(tmp_path) as process:
        time.sleep(random.Random(seed).uniform(0.5, 8))
        if process.poll() is None:
            kill = os.kill if seed % 2 else os.killpg
            kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=120)  # until its workers have closed standard error
    require_whole(tmp_path, invoke_recbias(*RUN, folder=tmp_path), read_figures(slower))
