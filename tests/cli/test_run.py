from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from support.commands import SMALL, inside, recbias, small_spec

FILES = {
    *("spec.yaml", "manifest.json", "metrics.csv", "per_unit.parquet", "significance.csv"),
    *("lists.parquet", "popularity.parquet", "report.json", "report.md", "report.html"),
    *("tables", "figures"),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ran")
    said = recbias("run", small_spec(folder), folder=folder)
    assert said.code == 0, said.err
    return folder


def test_a_run_leaves_every_file_of_the_contract(ran: Path) -> None:
    latest = ran / "results" / "small" / "latest"
    assert {each.name for each in latest.resolve().iterdir()} == FILES
    assert latest.is_symlink()
    assert not latest.readlink().is_absolute()


def test_the_summary_goes_to_stdout_and_progress_to_stderr(tmp_path: Path) -> None:
    said = recbias("run", small_spec(tmp_path), folder=tmp_path)
    assert "nDCG@5" in said.out
    assert "MostPop" in said.out
    assert "fit ItemKNN" in said.err
    assert "fit ItemKNN" not in said.out
    quiet = recbias("run", small_spec(tmp_path), "--quiet", folder=tmp_path)
    assert quiet.err == ""


def test_a_second_run_does_nothing_twice_and_gives_the_same_bytes(ran: Path) -> None:
    first = (ran / "results" / "small" / "latest" / "metrics.csv").read_bytes()
    time.sleep(1.0)  # the run id has the second in it
    said = recbias("run", ran / "small.yaml", "--verbose", folder=ran)
    assert said.code == 0
    manifest = json.loads((ran / "results" / "small" / "latest" / "manifest.json").read_text())
    assert all(stage["reused"] for stage in manifest["stages"])
    assert (ran / "results" / "small" / "latest" / "metrics.csv").read_bytes() == first


def test_the_resolved_spec_gives_the_same_run(ran: Path, tmp_path: Path) -> None:
    latest = ran / "results" / "small" / "latest"
    spec = small_spec(tmp_path, (latest / "spec.yaml").read_text())
    said = recbias("run", spec, "--out", ran / "results", "--verbose", folder=tmp_path)
    assert said.code == 0, said.err
    again = json.loads((ran / "results" / "small" / "latest" / "manifest.json").read_text())
    assert all(stage["reused"] for stage in again["stages"])


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_do_not_change_the_figures(ran: Path, tmp_path: Path, workers: int) -> None:
    said = recbias("run", ran / "small.yaml", "--workers", workers, folder=tmp_path)
    assert said.code == 0, said.err
    here = (tmp_path / "results" / "small" / "latest" / "metrics.csv").read_bytes()
    assert here == (ran / "results" / "small" / "latest" / "metrics.csv").read_bytes()


@pytest.mark.parametrize("after", [0.6, 0.9, 1.2, 1.5, 1.8])
def test_killed_at_any_moment_the_next_run_ends_in_the_same_bytes(
    ran: Path, tmp_path: Path, after: float
) -> None:
    command = [sys.executable, "-m", "recbias", "run", str(ran / "small.yaml"), "--quiet"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
    stored = set((tmp_path / "results" / "store").glob("??/*")) if tmp_path.exists() else set()
    said = recbias("run", ran / "small.yaml", folder=tmp_path)
    assert said.code == 0, said.err
    latest = tmp_path / "results" / "small" / "latest"
    expected = (ran / "results" / "small" / "latest" / "metrics.csv").read_bytes()
    assert (latest / "metrics.csv").read_bytes() == expected
    manifest = json.loads((latest / "manifest.json").read_text())
    done_again = [
        stage["stage"]
        for stage in manifest["stages"]
        if not stage["reused"] and stage["digest"] in {each.name for each in stored}
    ]
    assert done_again == []
    assert list((tmp_path / "results" / "store" / "tmp").iterdir()) == []


def test_two_runs_at_once_do_not_harm_each_other(ran: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recbias", "run", str(ran / "small.yaml"), "--quiet"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for each in both:
        _, err = each.communicate(timeout=120)
        assert each.returncode == 0, err
    runs = [each for each in (tmp_path / "results" / "small").iterdir() if not each.is_symlink()]
    assert len(runs) == 2
    expected = (ran / "results" / "small" / "latest" / "metrics.csv").read_bytes()
    assert [(each / "metrics.csv").read_bytes() for each in runs] == [expected] * 2


def test_an_interrupt_leaves_130_and_says_how_to_go_on(tmp_path: Path) -> None:
    spec = small_spec(tmp_path, SMALL.replace("n_users: 80, n_items: 60", "n_users: 20000"))
    command = [sys.executable, "-m", "recbias", "run", str(spec), "--quiet"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("results/store/??/*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again to resume" in err
    assert not (tmp_path / "results" / "small" / "latest").exists()


PLUGIN = '''
from __future__ import annotations
import os
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from recbias.core.outputs.ranked_lists import RankedLists


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A model that breaks its promises."""
    provides: ClassVar[frozenset] = frozenset({"lists"})
    needs: ClassVar[frozenset] = frozenset({"train"})
    libraries: ClassVar[tuple] = ()
    fault: str = "twice"

    def files(self, data):
        return []

    def fit(self, data, rng):
        if self.fault == "raises":
            raise ValueError("cannot learn this")
        if self.fault == "dies":
            os.kill(os.getpid(), 9)
        return self

    def recommend(self, queries, k, data):
        seen = data.train.binary.toarray()[queries.users]
        order = np.argsort(-seen if self.fault == "seen" else seen, axis=1, kind="stable")
        items = order[:, :k].astype(np.int32)
        scores = np.tile(-np.arange(k, dtype=np.float32), (len(queries), 1))
        if self.fault == "twice":
            items[0, 1] = items[0, 0]
        if self.fault == "nan":
            scores[0, 0] = np.nan
        return RankedLists(items, scores)
'''


def odd_spec(folder: Path, fault: str) -> Path:
    (folder / "odd.py").write_text(PLUGIN)
    odd = f'{{name: "./odd.py:Odd", label: odd, fault: {fault}}}'
    return small_spec(folder, SMALL.replace("ItemKNN]", f"{odd}]"))


@pytest.mark.parametrize(
    ("fault", "code", "said_of_it"),
    [
        ("twice", 2, "twice"),
        ("seen", 2, "training"),
        ("nan", 2, "NaN"),
        ("raises", 1, "ValueError: cannot learn this"),
    ],
)
def test_a_model_that_fails_is_reported_and_the_others_finish(
    tmp_path: Path, fault: str, code: int, said_of_it: str
) -> None:
    said = recbias("run", odd_spec(tmp_path, fault), folder=tmp_path)
    assert said.code == code, said.err
    assert said_of_it in said.err
    latest = tmp_path / "results" / "small" / "latest"
    metrics = pd.read_csv(latest / "metrics.csv")
    assert set(metrics["model"]) == {"Random", "MostPop"}
    manifest = json.loads((latest / "manifest.json").read_text())
    assert said_of_it in manifest["failures"][0]["message"]
    assert "odd" in (latest / "report.html").read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_model_of_ones_own_file_runs_in_workers_too(tmp_path: Path, workers: int) -> None:
    said = recbias("run", odd_spec(tmp_path, "none"), "--workers", workers, folder=tmp_path)
    assert said.code == 0, said.err
    metrics = pd.read_csv(tmp_path / "results" / "small" / "latest" / "metrics.csv")
    assert set(metrics["model"]) == {"Random", "MostPop", "odd"}


def test_a_worker_that_dies_costs_its_own_model_only(tmp_path: Path) -> None:
    said = recbias("run", odd_spec(tmp_path, "dies"), "--workers", 2, folder=tmp_path)
    assert said.code == 1
    assert "worker process died" in said.err
    metrics = pd.read_csv(tmp_path / "results" / "small" / "latest" / "metrics.csv")
    assert set(metrics["model"]) == {"Random", "MostPop"}


def test_on_error_stop_writes_no_run(tmp_path: Path) -> None:
    spec = odd_spec(tmp_path, "raises")
    said = recbias("run", spec, "--on-error", "stop", folder=tmp_path)
    assert said.code == 1
    assert "cannot learn this" in said.err
    assert not (tmp_path / "results" / "small" / "latest").exists()


def test_limit_asks_the_first_queries_only(tmp_path: Path) -> None:
    said = recbias("run", small_spec(tmp_path), "--limit", 7, folder=tmp_path)
    assert said.code == 0, said.err
    lists = pd.read_parquet(tmp_path / "results" / "small" / "latest" / "lists.parquet")
    assert lists["query_id"].nunique() == 7


def test_set_changes_one_value_and_keeps_the_rest_stored(ran: Path, tmp_path: Path) -> None:
    shutil.copytree(ran / "results" / "store", tmp_path / "results" / "store")
    said = recbias(
        *("run", ran / "small.yaml", "--set", "models.2.neighbors=3", "--set", "name=other"),
        folder=tmp_path,
    )
    assert said.code == 0, said.err
    done = (tmp_path / "results" / "other" / "latest" / "manifest.json").read_text()
    made = {stage["stage"] for stage in json.loads(done)["stages"] if not stage["reused"]}
    assert made == {"fit ItemKNN", "ask ItemKNN", *(f"measure {m} of ItemKNN" for m in METRICS)}


METRICS = ("nDCG", "HR", "ItemCoverage")


def test_plan_shows_what_is_stored_and_does_nothing(ran: Path, tmp_path: Path) -> None:
    before = recbias("plan", ran / "small.yaml", folder=tmp_path)
    assert before.code == 0
    assert "0 stored" in before.out
    assert not (tmp_path / "results").exists()
    after = recbias("plan", ran / "small.yaml", folder=ran)
    assert "0 to do" in after.out
    assert "estimated memory" in after.out


def test_a_read_only_folder_is_one_line(tmp_path: Path) -> None:
    spec = small_spec(tmp_path)
    blocked = tmp_path / "results"
    blocked.write_text("a file where a folder should be")
    said = recbias("run", spec, folder=tmp_path)
    assert said.code == 2
    assert said.err.startswith("error: ")
    assert "help: give another --out" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("--limit", "0"), "--limit"),
        (("--workers", "0"), "--workers"),
        (("--limit", "x"), "limit"),
    ],
)
def test_a_bad_option_is_the_users_fault(
    tmp_path: Path, command: str, words: tuple[str, str], where: str
) -> None:
    said = recbias(command, small_spec(tmp_path), *words, folder=tmp_path)
    assert said.code == 2
    assert where in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("out", ["a:b", "s3:x", "http://x", "seed=7"])
def test_a_folder_of_results_may_look_like_something_else(tmp_path: Path, out: str) -> None:
    small_spec(tmp_path)
    assert inside("run", "small.yaml", "--out", out, folder=tmp_path).code == 0
    assert inside("run", "small.yaml", "--out", out, folder=tmp_path).code == 0
    assert inside("report", "small", "--out", out, folder=tmp_path).code == 0
    assert inside("compare", "small", "small", "--out", out, folder=tmp_path).code == 0
    assert (tmp_path / out / "small/latest/lists.parquet").is_file()


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    small_spec(tmp_path)
    assert inside("run", "small.yaml", "--out=~/res", folder=tmp_path).code == 0
    assert (home / "res/small/latest/lists.parquet").is_file()
    assert not (tmp_path / "~").exists()
    assert inside("report", "small", "--out=~/res", folder=tmp_path).code == 0
    assert inside("report", "~/res/small/latest", folder=tmp_path).code == 0
    assert "nothing to remove" not in inside("clean", "--out=~/res", folder=tmp_path).out


def test_a_report_that_fails_leaves_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> str:
        raise ZeroDivisionError("no axis")

    monkeypatch.setattr("recbias.reports.writers.write.html_report", broken)
    small_spec(tmp_path)
    said = inside("run", "small.yaml", "--quiet", folder=tmp_path)
    assert said.code == 1
    assert "nDCG@5" in said.out
    assert "write the reports: ZeroDivisionError: no axis" in said.err
    assert "recbias report" in said.err
    latest = tmp_path / "results/small/latest"
    for name in ("metrics.csv", "significance.csv", "per_unit.parquet", "lists.parquet"):
        assert (latest / name).is_file()
    assert not (latest / "report.html").exists()
    monkeypatch.undo()
    assert inside("report", "small", folder=tmp_path).code == 0
    assert (latest / "report.html").is_file()
