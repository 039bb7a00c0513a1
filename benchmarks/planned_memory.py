"""The planned peak memory of the stages of specs, beside what each then takes.

Each stage runs in a process of its own on stored inputs, as the workers of a run do; the sizes of
the data are those of the loaded dataset, its split and its queries.

    python benchmarks/planned_memory.py SPEC [SPEC ...] [--folder DIR] [--data DIR]

The ratio is the planned peak divided by the measured one. Loops that numba has not compiled yet on
a machine are compiled in the first process that needs them, so run it twice, with a new folder.
"""

from __future__ import annotations

import argparse
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from recbias import api
from recbias.core.records import StageRecord
from recbias.runner.execution.executor import Executor, Silent
from recbias.runner.planning.expected_memory import PeakPlanner
from recbias.runner.planning.expected_sizes import ExpectedSizes
from recbias.runner.planning.plan import Plan
from recbias.runner.stage import Stage
from recbias.runner.storage.store import Store


def measure(stage: Stage, store: Store) -> StageRecord:
    """Compute one stage in this process, and return its record."""
    return Executor(store, Silent()).ensure(stage)


def plan_peak(run_plan: Plan, store: Store, stage: Stage, record: StageRecord) -> float | None:
    """Return the planned peak of a stage by what is stored, in bytes."""
    known: dict[str, Any] = {
        other.digest: store.record(other.digest)
        for other in run_plan.stages
        if other.digest != stage.digest and store.has(other.digest)
    }
    if stage.kind in {"dataset", "split", "queries"}:
        known[stage.digest] = record
    return PeakPlanner().plan(stage, ExpectedSizes(known).find(stage))


def measure_all(spec: Path, folder: Path, data: Path | None) -> None:
    """Print a row for each stage of a spec, computed in their order."""
    run_plan, store = api.plan(spec, out=folder, data=data)
    context = get_context("spawn")
    for stage in run_plan.stages:
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            record = pool.submit(measure, stage, store).result()
        if record.failure is not None:
            raise SystemExit(f"{stage.title}: {record.failure.message}")
        planned, peak = plan_peak(run_plan, store, stage, record), record.peak_memory_mb or 0.0
        expected = "none" if planned is None else f"{planned / 2**20:,.0f}"
        ratio = f"{planned / 2**20 / peak:.2f}" if planned is not None and peak else ""
        cells = f"{record.seconds:.1f} | {peak:,.0f} | {expected} | {ratio}"
        print(f"| {spec.stem} | {stage.title} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("specs", nargs="+", type=Path)
    parser.add_argument("--folder", type=Path, help="where the results are stored, and stay")
    parser.add_argument("--data", type=Path, help="the folder of the datasets")
    arguments = parser.parse_args()
    print("| spec | stage | wall, s | peak, MB | planned, MB | ratio |")
    print("|---|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as temporary:
        for spec in arguments.specs:
            folder = (arguments.folder or Path(temporary)) / spec.stem
            measure_all(spec, folder, arguments.data)


if __name__ == "__main__":
    main()
