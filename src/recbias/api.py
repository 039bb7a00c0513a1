"""recbias from Python: ``run`` does what the command does, ``load`` opens a finished run."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from recbias.config.experiment import Experiment, load_experiment
from recbias.core.errors import OutOfRange, StageError, UserError
from recbias.core.network import forbid_network as without_network
from recbias.core.paths import local_path
from recbias.core.records import StageRecord
from recbias.core.stage_context import collect_warnings
from recbias.registry import REGISTRIES
from recbias.reports.published_tables.compare_published import comparable
from recbias.reports.views.run_tables import read_run
from recbias.reports.writers.write import write_reports
from recbias.runner.environment import peak_memory_mb
from recbias.runner.execution.executor import Executor, Observer, Silent, execute, failed
from recbias.runner.execution.local import Processes
from recbias.runner.execution.preflight import checked
from recbias.runner.execution.ray import RayTasks
from recbias.runner.planning.plan import Options, Plan
from recbias.runner.planning.planner import make_plan
from recbias.runner.results.manifest import Clock, manifest
from recbias.runner.results.metric_rows import collect
from recbias.runner.results.run_folder import attempt_reports, new_run_folder, write_results
from recbias.runner.results.significance import significance
from recbias.runner.storage.fingerprints import Fingerprints
from recbias.runner.storage.store import Store, writing


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run.

    Args:
        folder: ``results/<name>/<run id>``.
    """

    folder: Path

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """One row a figure: the columns of ``metrics.csv``."""
        return read_run(self.folder).metrics

    @cached_property
    def significance(self) -> pd.DataFrame:
        """One row a comparison: the columns of ``significance.csv``."""
        return read_run(self.folder).significance

    @cached_property
    def per_unit(self) -> pd.DataFrame | None:
        """One row a unit and figure, as ``per_unit.parquet``; None where nothing has units."""
        return read_run(self.folder).per_unit

    @cached_property
    def lists(self) -> pd.DataFrame | None:
        """One row a recommendation, as ``lists.parquet``; None where no model gives lists."""
        return read_run(self.folder).lists

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the run was made of."""
        return dict(read_run(self.folder).manifest)

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The stages that did not finish, and why."""
        return list(self.manifest["failures"])


def load(folder: Path | str) -> Run:
    """Return a finished run.

    Raises:
        MissingRun: The folder is not one of a run.
    """
    folder = local_path(folder)
    read_run(folder)
    return Run(folder)


def data_folder(data: Path | str | None = None) -> Path:
    """Return the folder of datasets: as given, else ``$RECBIAS_DATA``, else ``data``."""
    return local_path(data or os.environ.get("RECBIAS_DATA") or "data")


def read_experiment(
    spec: Path | str | Mapping[str, Any], overrides: Sequence[str] = ()
) -> Experiment:
    """Return the experiment of a spec, with its plug-ins built.

    Raises:
        Faults: Everything that is wrong with it, at once.
    """
    source = spec if isinstance(spec, Mapping) else Path(spec)
    return load_experiment(
        source, registries=REGISTRIES, overrides=overrides, check_reference=comparable
    )


def plan(
    spec: Path | str | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    out: Path | str = "results",
    data: Path | str | None = None,
    limit: int | None = None,
) -> tuple[Plan, Store]:
    """Return the stages of a spec and the store they would use; nothing is worked out.

    Raises:
        Faults: Everything that is wrong with the spec, at once.
    """
    if limit is not None and limit < 1:
        raise OutOfRange("must be at least 1", where="--limit", remedy="give a number of queries")
    store = Store(local_path(out) / "store")
    experiment = read_experiment(spec, overrides)
    made = make_plan(experiment, Options(data_folder(data), limit), Fingerprints(store))
    return made, store


def run(  # noqa: PLR0913  the options of the command, each by name
    spec: Path | str | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    out: Path | str = "results",
    data: Path | str | None = None,
    workers: int = 1,
    executor: Literal["local", "ray"] = "local",
    fresh: bool = False,
    offline: bool = False,
    on_error: Literal["stop", "continue"] = "continue",
    limit: int | None = None,
    observer: Observer | None = None,
) -> Run:
    """Run, or resume, the experiment of a spec, and return the finished run.

    Args:
        spec: The experiment file, or its content as a mapping.
        overrides: ``models.1.neighbors=40`` and the like.
        out: The folder of results.
        data: The folder of datasets; by default ``$RECBIAS_DATA``, else ``data``.
        workers: Processes that train and ask models at once.
        executor: ``local``; ``ray`` needs the package of that name.
        fresh: Do not reuse stored stages.
        offline: The network is not used: a model that is not on this machine, and a request to a
            language model that has no stored reply, are errors.
        on_error: Whether the other models finish after one has failed.
        limit: Ask only the first so many queries.
        observer: Is told how it goes.

    Raises:
        UserError: The spec or the data is at fault.
        StageError: A stage failed and there is nothing to report, or ``on_error`` is ``stop``.
    """
    began, started = time.perf_counter(), datetime.now(UTC)
    out = local_path(out)
    chains = executor_of(executor, workers)
    allowed = without_network() if offline else nullcontext()
    made, store = plan(spec, overrides=overrides, out=out, data=data, limit=limit)
    with writing(out):
        (out / "store").mkdir(parents=True, exist_ok=True)
    store.sweep()
    with allowed:
        walk = execute(
            made,
            store,
            observer or Silent(),
            fresh=fresh,
            stop=on_error == "stop",
            chains=checked(chains),
        )
    _refuse_nothing(made, walk)
    with collect_warnings() as notes, new_run_folder(out, made) as folder:
        measured = collect(made, walk)
        compared = significance(measured, made.experiment.tests, made.experiment.seeds[0])
        peak = max(peak_memory_mb(), *(each.peak_memory_mb for each in walk.records.values()))
        clock = Clock(started, time.perf_counter() - began, peak)
        record = manifest(made, walk, clock, notes) | {"offline": offline}
        write_results(
            folder.temporary,
            made,
            walk,
            measured=measured,
            significance=compared,
            manifest=record,
        )
        report = made.experiment.report
        write = partial(
            write_reports,
            folder.temporary,
            formats=report.formats,
            reference=report.reference,
            tolerance=report.tolerance,
        )
        attempt_reports(folder.temporary, record, write)
        return Run(folder.publish())


def executor_of(name: str, workers: int) -> Processes | RayTasks:
    """Return what walks the models of a plan.

    Raises:
        OutOfRange: There is not one worker.
        MissingExtra: Ray is asked for and not installed.
    """
    if workers < 1:
        raise OutOfRange("must be at least 1", where="--workers", remedy="give --workers 1")
    return RayTasks(workers) if name == "ray" else Processes(workers)


def _refuse_nothing(made: Plan, walk: Executor) -> None:
    """Raise the first failure where no model gave an answer: there is nothing to report."""
    answers = [walk.records.get(each.answer.digest) for each in made.chains if each.answer]
    if any(each is not None and each.failure is None for each in answers):
        return
    broken: list[StageRecord] = [each for each in walk.records.values() if each.failure]
    raise failed(broken[0]) if broken else StageError("no model gave an answer")


__all__ = ["Run", "UserError", "data_folder", "load", "plan", "read_experiment", "run"]
