from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from support.commands import SMALL, invoke_recbias, run_recbias, write_small_spec

FILES = {
    *("spec.yaml", "manifest.json", "metrics.csv", "per_unit.parquet", "significance.csv"),
    *(
        "replicates.parquet",
        "lists.parquet",
        "popularity.parquet",
        "report.json",
        "report.md",
        "report.html",
    ),
    *("tables", "figures"),
}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ran")
    result = invoke_recbias("run", write_small_spec(folder, SMALL), folder=folder)
    assert result.code == 0, result.err
    return folder


def test_run_folder_has_every_documented_file(finished_run: Path) -> None:
    latest = finished_run / "results" / "small" / "latest"
    assert {path.name for path in latest.resolve().iterdir()} == FILES
    assert latest.is_symlink()
    assert not latest.readlink().is_absolute()


def test_summary_is_on_stdout_and_progress_on_stderr(tmp_path: Path) -> None:
    result = invoke_recbias("run", write_small_spec(tmp_path), folder=tmp_path)
    assert "Results (@5)" in result.out
    assert "MostPop" in result.out
    assert "fit ItemKNN" in result.err
    assert "fit ItemKNN" not in result.out
    run = ("run", write_small_spec(tmp_path), "--quiet")
    assert invoke_recbias(*run, folder=tmp_path).err == ""
    few = ("--set", "tests=[{name: sign_flip, permutations: 9}]")  # too few for a p below 0.05
    first, unchanged = (invoke_recbias(*run, *few, folder=tmp_path) for _ in range(2))
    assert first.err.count("warning: ") == 1
    assert unchanged.err == first.err


def test_a_run_without_changes_adds_no_folder_unless_its_files_were_changed(
    tmp_path: Path,
) -> None:
    spec = write_small_spec(tmp_path)
    experiment = tmp_path / "results" / "small"

    def run(*options: str) -> Path:
        result = invoke_recbias("run", spec, *options, folder=tmp_path)
        assert result.code == 0, result.err
        return (experiment / "latest").resolve()

    first = run()
    metrics = (first / "metrics.csv").read_bytes()
    assert run() == first
    assert run("--workers", "2") == first
    (first / "metrics.csv").write_text("damaged")
    second = run()
    assert second != first
    assert (second / "metrics.csv").read_bytes() == metrics
    manifest = json.loads((second / "manifest.json").read_text())
    assert all(stage["reused"] for stage in manifest["stages"])
    assert run("--set", "report.formats=[md]") != second
    third = run()
    assert invoke_recbias("report", third, "--reference", "children/a3", folder=tmp_path).code == 0
    fourth = run()
    assert fourth != third
    assert run("--fresh") != fourth


def test_complete_spec_of_a_run_gives_the_same_run(finished_run: Path, tmp_path: Path) -> None:
    latest = finished_run / "results" / "small" / "latest"
    before = latest.resolve()
    spec = write_small_spec(tmp_path, (latest / "spec.yaml").read_text())
    result = invoke_recbias("run", spec, "--out", finished_run / "results", folder=tmp_path)
    assert result.code == 0, result.err
    assert latest.resolve() == before


def test_interrupt_exits_with_130_and_explains_how_to_resume(tmp_path: Path) -> None:
    spec = write_small_spec(tmp_path, SMALL.replace("n_users: 80, n_items: 60", "n_users: 20000"))
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
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from recbias.core.evidence import RankedLists


@dataclass(frozen=True, kw_only=True)
class Odd:
    """A model that violates its contract."""
    provides: ClassVar[frozenset] = frozenset({"lists"})
    needs: ClassVar[frozenset] = frozenset({"train"})
    libraries: ClassVar[tuple] = ()
    fault: str = "twice"

    def files(self, data):
        return []

    def fit(self, data, rng):
        if self.fault == "raises":
            raise ValueError("fit has failed")
        return self

    def recommend(self, queries, k, data):
        seen = data.train.binary.toarray()[queries.users]
        items = np.argsort(seen, axis=1, kind="stable")[:, :k].astype(np.int32)
        scores = np.tile(-np.arange(k, dtype=np.float32), (len(queries), 1))
        items[0, 1] = items[0, 0]
        return RankedLists(items, scores)
'''


def write_odd_spec(folder: Path, fault: str) -> Path:
    (folder / "odd.py").write_text(PLUGIN)
    odd = f'{{name: "./odd.py:Odd", label: odd, fault: {fault}}}'
    return write_small_spec(folder, SMALL.replace("ItemKNN]", f"{odd}]"))


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [("twice", 2, "twice"), ("raises", 1, "ValueError: fit has failed")],
)
def test_failing_model_is_reported_and_the_others_finish(
    tmp_path: Path, fault: str, code: int, message: str
) -> None:
    result = invoke_recbias("run", write_odd_spec(tmp_path, fault), folder=tmp_path)
    assert result.code == code, result.err
    assert message in result.err
    latest = tmp_path / "results" / "small" / "latest"
    metrics = pd.read_csv(latest / "metrics.csv")
    assert set(metrics["model"]) == {"Random", "MostPop"}
    manifest = json.loads((latest / "manifest.json").read_text())
    assert message in manifest["failures"][0]["message"]
    assert "odd" in (latest / "report.html").read_text()


def test_on_error_stop_writes_no_run(tmp_path: Path) -> None:
    spec = write_odd_spec(tmp_path, "raises")
    result = invoke_recbias("run", spec, "--on-error", "stop", folder=tmp_path)
    assert result.code == 1
    assert "fit has failed" in result.err
    assert not (tmp_path / "results" / "small" / "latest").exists()


def test_plan_counts_cached_stages_and_writes_nothing(finished_run: Path, tmp_path: Path) -> None:
    before = invoke_recbias("plan", finished_run / "small.yaml", folder=tmp_path)
    assert before.code == 0
    assert "0 cached" in before.out
    assert not (tmp_path / "results").exists()
    after = invoke_recbias("plan", finished_run / "small.yaml", folder=finished_run)
    assert "0 to run" in after.out
    assert "estimated memory" in after.out


def test_failing_report_leaves_the_result_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recbias.reports.write.render_html", int)  # whose failure is in recbias
    write_small_spec(tmp_path, SMALL)
    result = invoke_recbias("run", "small.yaml", "--quiet", folder=tmp_path)
    assert result.code == 1
    assert "Results (@5)" in result.out
    assert "write the reports: TypeError: " in result.err
    assert "recbias report" in result.err
    latest = tmp_path / "results/small/latest"
    for name in ("metrics.csv", "significance.csv", "per_unit.parquet", "lists.parquet"):
        assert (latest / name).is_file()
    assert not (latest / "report.html").exists()
    monkeypatch.undo()
    assert invoke_recbias("report", "small", folder=tmp_path).code == 0
    assert (latest / "report.html").is_file()


HEAVY = ("torch", "transformers", "implicit", "lenskit", "sklearn")


def list_imported_modules(arguments: list[str], folder: Path) -> set[str]:
    script = (
        "import sys\n"
        f"sys.argv = ['recbias', *{arguments!r}]\n"
        "from recbias.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('MODULES', *sorted(sys.modules))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(result.stdout.rpartition("MODULES")[2].split())


def test_help_imports_no_heavy_library(tmp_path: Path) -> None:
    loaded = list_imported_modules(["--help"], tmp_path)
    assert not loaded & {*HEAVY, "numpy", "pandas", "scipy", "pydantic", "pyarrow"}


def test_plan_imports_no_learning_library(tmp_path: Path) -> None:
    spec = write_small_spec(tmp_path)
    models = "implicit/ALS, lenskit/ItemKNN"
    spec.write_text(spec.read_text().replace("MostPop", models))
    loaded = list_imported_modules(["plan", str(spec)], tmp_path)
    assert "recbias.runner.plan" in loaded
    assert not loaded & set(HEAVY)


def test_clean_empties_the_store_and_keeps_run_folders(tmp_path: Path) -> None:
    spec = write_small_spec(tmp_path)
    assert invoke_recbias("run", spec, "--quiet", folder=tmp_path).code == 0
    results = tmp_path / "results"
    before = sorted(results.glob("store/??/*"))
    dry_run = invoke_recbias("clean", "--dry-run", folder=tmp_path)
    assert "would remove" in dry_run.out
    assert sorted(results.glob("store/??/*")) == before
    recent = invoke_recbias("clean", "--older-than", "1d", folder=tmp_path)
    assert "nothing to remove" in recent.out
    invalid = invoke_recbias("clean", "--older-than", "soon", folder=tmp_path)
    assert invalid.code == 2
    assert "help: write 30d, 12h, 90m or 2w" in invalid.err
    asked = invoke_recbias("clean", folder=tmp_path, typed="n\n")
    assert "They can be computed again. [y/N]" in asked.out
    unanswered = run_recbias("clean", folder=tmp_path)
    assert unanswered.code == 2
    assert "help: add --yes" in unanswered.err
    assert sorted(results.glob("store/??/*")) == before
    cleaned = invoke_recbias("clean", folder=tmp_path, typed="y\n")
    assert cleaned.code == 0
    assert not sorted(results.glob("store/??/*"))
    assert (results / "small" / "latest" / "metrics.csv").is_file()
    assert invoke_recbias("run", spec, "--quiet", folder=tmp_path).code == 0


def write_replies(folder: Path) -> Path:
    """Write two files with three replies."""
    replies = folder / "results" / "replies"
    replies.mkdir(parents=True)
    (replies / "mine.jsonl").write_text("{}\n{}\n", encoding="utf-8")
    (replies / "yours.jsonl").write_text("{}\n", encoding="utf-8")
    return replies


@pytest.mark.parametrize(
    ("options", "typed", "code", "line", "are_kept"),
    [
        (["--yes"], None, 0, "removed 3 replies", False),
        ([], "y\n", 0, "removed 3 replies", False),
        ([], "n\n", 0, "kept 3 replies", True),
        ([], "", 2, "help: add --yes", True),
        (["--yes", "--dry-run"], None, 0, "would remove 3 replies", True),
        (["--yes", "--older-than", "1d"], None, 2, "do not expire", True),
    ],
)
def test_replies_are_removed_only_if_the_user_says_so(
    tmp_path: Path, options: list[str], typed: str | None, code: int, line: str, are_kept: bool
) -> None:
    replies = write_replies(tmp_path)
    cleaned = invoke_recbias("clean", "--replies", *options, folder=tmp_path, typed=typed)
    assert cleaned.code == code
    assert line in cleaned.out + cleaned.err
    assert replies.exists() == are_kept
