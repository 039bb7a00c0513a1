"""Damaged stored results: computed again with a warning, and the figures stay the same."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from recbias.core.files import digest_file
from recbias.runner.store import RECORD, seal_record, unseal_record
from support.commands import CommandResult, invoke_recbias, write_small_spec
from support.faults.file_faults import (
    break_file,
    refuse_hang,
    replace_by_copy,
    swap,
    truncate,
    write_foreign,
)
from support.faults.samples import CONTROLS, choose_seeds

SPEC = """\
name: small
dataset: {name: demo, n_users: 40, n_items: 30}
split: {name: random, test: 0.2}
k: 5
models: [MostPop, ItemKNN]
metrics: [nDCG, ItemCoverage]
tests: [paired_t]
report: {formats: [csv]}
"""
FIGURES = ("metrics.csv", "significance.csv", "per_unit.parquet", "lists.parquet")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_small_spec(folder, SPEC)
    assert invoke_recbias("run", "small.yaml", folder=folder).code == 0
    return folder


def list_results(folder: Path) -> list[Path]:
    """Return the stored results by title: their addresses differ from commit to commit."""
    results = [path for path in folder.glob("results/store/??/*") if path.is_dir()]
    return sorted(results, key=lambda path: json.loads((path / RECORD).read_text())["stage"])


def break_any_file(results: Sequence[Path], rng: random.Random) -> tuple[str, int]:
    return break_file(rng.choice(sorted(rng.choice(results).iterdir())), rng), 1


def break_record(results: Sequence[Path], rng: random.Random) -> tuple[str, int]:
    return break_file(rng.choice(results) / RECORD, rng), 1


def break_sealed_file(results: Sequence[Path], rng: random.Random) -> tuple[str, int]:
    """Damage a file so that it cannot be read, and record what it is now."""
    folder = rng.choice(results)
    path = rng.choice([member for member in sorted(folder.iterdir()) if member.name != RECORD])
    fault = rng.choice([truncate, write_foreign]) if path.suffix != ".json" else truncate
    fault(path, rng)
    record = unseal_record((folder / RECORD).read_text(encoding="utf-8"))
    record["files"][path.name] = [path.stat().st_size, digest_file(path)]
    (folder / RECORD).write_text(seal_record(record), encoding="utf-8")
    return f"sealed: {fault.__name__} {path.name}", 1


def swap_results(results: Sequence[Path], rng: random.Random) -> tuple[str, int]:
    swap(*rng.sample(results, 2))
    return "swap_results", 2


def copy_result(results: Sequence[Path], rng: random.Random) -> tuple[str, int]:
    """Put a copy of a result of another stage in the place of one, first of the same kind."""
    folder, *candidates = rng.sample(results, len(results))
    names = {path.name for path in folder.iterdir()}
    same = [member for member in candidates if {path.name for path in member.iterdir()} == names]
    replace_by_copy(folder, (same or candidates)[0])
    return "copy_result", 1


def link_result(results: Sequence[Path], rng: random.Random) -> tuple[str, int]:
    folder, other = rng.sample(results, 2)
    shutil.rmtree(folder)
    folder.symlink_to(rng.choice([str(other), folder.name, "absent", "/"]))
    return "link_result", 1


def replace_folder(results: Sequence[Path], rng: random.Random) -> tuple[str, int]:
    """Put an empty folder, a file or nothing in the place of a result or of its parent."""
    folder = rng.choice(results)
    target = rng.choice([folder, folder.parent])
    n_damaged = len([*target.iterdir()]) if target != folder else 1
    shutil.rmtree(target)
    kind = rng.choice(["folder", "file", "nothing"])
    if kind == "folder":
        target.mkdir()
    elif kind == "file":
        target.write_bytes(b"")
    return f"{kind} for {'a result' if target == folder else 'its parent'}", n_damaged


def add_file(results: Sequence[Path], rng: random.Random) -> tuple[str, int]:
    (rng.choice(results) / "more.parquet").write_bytes(b"more")
    return "add_file", 1


FAULTS: Sequence[Callable[[Sequence[Path], random.Random], tuple[str, int]]] = (
    *(break_any_file, break_any_file, break_record),
    *(break_sealed_file, swap_results, copy_result, link_result, replace_folder, add_file),
)


def read_figures(folder: Path) -> dict[str, bytes]:
    run = folder / "results" / "small" / "latest"
    return {name: (run / name).read_bytes() for name in FIGURES}


def require_clean(result: CommandResult, fault: str) -> None:
    output = result.out + result.err
    assert "Traceback" not in output, fault
    assert not CONTROLS.search(output), fault


@pytest.mark.parametrize("seed", choose_seeds(2, 600))
def test_damaged_results_are_computed_again(whole: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    folder = Path(shutil.copytree(whole, tmp_path / "a", symlinks=True))
    fault, n_damaged = rng.choice(FAULTS)(list_results(folder), rng)
    with refuse_hang():
        words = rng.choice([("plan", "small.yaml"), ("clean", "--dry-run"), ("runs",)])
        result = invoke_recbias(*words, folder=folder)
        require_clean(result, fault)
        assert result.code == 0, fault
        workers = ["--workers", "2"] if seed % 100 == 99 else []
        result = invoke_recbias("run", "small.yaml", *workers, folder=folder)
        require_clean(result, fault)
        assert result.code == 0, fault
        assert result.err.count("warning: ") <= n_damaged, fault
        assert read_figures(folder) == read_figures(whole), fault
        again = invoke_recbias("run", "small.yaml", folder=folder)
        assert again.code == 0, fault
        assert "warning: " not in again.err, fault
    assert read_figures(folder) == read_figures(whole), fault
