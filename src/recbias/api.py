"""recbias from Python: ``run`` runs an experiment; the other functions read its results."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from recbias.core.errors import UserError
from recbias.core.input_files import to_local_path
from recbias.core.machine.operating_system import measure_peak_memory_mb
from recbias.core.network import forbid_network
from recbias.core.packages import list_libraries
from recbias.core.stage_context import collect_warnings
from recbias.plans import (
    data_folder,
    list_stages,
    list_warnings,
    plan,
    preview_run,
    read_experiment,
)
from recbias.progress import is_notebook, open_observer
from recbias.run_power import power
from recbias.runner.checks.check_rows import write_checks
from recbias.runner.execution.choose import create_executor, require_answers, require_choice
from recbias.runner.execution.executor import Observer, execute
from recbias.runner.execution.needed_stages import look_up_results
from recbias.runner.execution.preflight import add_preflight
from recbias.runner.planning.plugin_contracts import list_plugins
from recbias.runner.results.group_rows import collect_groups
from recbias.runner.results.manifest import RunTiming, build_manifest
from recbias.runner.results.metric_rows import collect_measurements, list_failed_values
from recbias.runner.results.run_folder import (
    attempt_reports,
    check_latest,
    new_run_folder,
    write_groups,
    write_results,
)
from recbias.runner.results.significance import compare_models
from recbias.runner.results.tradeoffs import write_tradeoffs
from recbias.runner.results.value_warnings import (
    warn_about_equal_values,
    warn_about_zero_accuracy,
)
from recbias.runs import Run, compare, list_runs, load
from recbias.verification import verify


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
    progress: bool | None = None,
    device: str | None = None,
    store: str | None = None,
    observer: Observer | None = None,
) -> Run:
    """Run or resume the experiment of a spec.

    Args:
        spec: The experiment file, the name of a packaged spec, or the content as a mapping, in
            which data frames and arrays may stand for files, and objects for entries of models,
            metrics and tests.
        overrides: Settings such as ``models.1.neighbors=40``.
        out: The folder of results.
        data: The folder of datasets; by default ``$RECBIAS_DATA``, else ``data``.
        workers: The number of processes that train and query models in parallel.
        executor: ``local``; ``ray`` needs the package of that name.
        fresh: Whether to compute every stage again instead of reading the cache.
        offline: Whether to forbid network access: a pretrained model that is not on this machine,
            and a request to a language model without a stored reply, are errors.
        on_error: Whether the other models finish after one has failed.
        limit: The number of queries to evaluate, from the first; all by default.
        device: Where models compute that do not name a device themselves; it replaces ``device``
            of the spec.
        store: The URL at which results are stored too, such as ``s3://bucket/recbias``.
        progress: Whether to show the progress; by default only in a notebook.
        observer: Receives the progress of the run, instead of showing it.

    Returns:
        The finished run.

    Raises:
        UserError: The spec or the data is at fault.
        StageError: A stage failed and no model has results, or ``on_error`` is ``stop``.

    Example:
        run = recbias.run("quickstart", overrides=["k=20"])
        run.metrics.query("metric == 'nDCG'")[["model", "value", "ci_low", "ci_high"]]
    """
    from recbias.reports.writers.write import write_reports  # plans do not need it

    start_seconds, started = time.perf_counter(), datetime.now(UTC)
    out = to_local_path(out)
    require_choice("--on-error", on_error, ("stop", "continue"))
    chains = create_executor(executor, workers)
    settings = {"overrides": overrides, "limit": limit, "device": device, "store": store}
    run_plan, results = plan(spec, out=out, data=data, **settings)  # type: ignore[arg-type]
    check_latest(out, run_plan)
    with collect_warnings() as store_warnings:
        results.prepare()
    if not fresh:
        look_up_results(run_plan, results)
    plugins = [spec.plugin for spec in list_plugins(run_plan.experiment)]
    require_room_for_run({name for plugin in plugins for name in list_libraries(plugin)})
    shows = is_notebook() if progress is None else progress
    with (
        forbid_network() if offline else nullcontext(),
        nullcontext(observer) if observer else open_observer(quiet=not shows) as displayed,
    ):
        plan_warnings = (*list_warnings(run_plan), *store_warnings)
        for warning in plan_warnings:
            displayed.warned(warning)
        with chains.prepare(run_plan, results):
            execution = execute(
                run_plan,
                results,
                displayed,
                fresh=fresh,
                stop=on_error == "stop",
                run_models=add_preflight(chains),
                workers=workers,
            )
    require_answers(run_plan, execution)
    with collect_warnings() as warnings, new_run_folder(out, run_plan) as folder:
        experiment, records = run_plan.experiment, execution.records.values()
        metrics = collect_measurements(run_plan, execution)
        warn_about_zero_accuracy(experiment.models, metrics)
        warn_about_equal_values(metrics)
        groups = collect_groups(metrics, run_plan, execution)
        comparisons, failures = compare_models(
            metrics, experiment.tests, experiment.seeds[0], groups
        )
        peak_mb = max(
            measure_peak_memory_mb(), *(record.peak_memory_mb or 0.0 for record in records)
        )
        clock = RunTiming(started, time.perf_counter() - start_seconds, peak_mb)
        failed = list_failed_values(run_plan, execution)
        checks = write_checks(folder.temporary, experiment, metrics, failed)
        for warning in warnings:
            displayed.warned(warning)
        all_warnings = (*plan_warnings, *warnings)
        run_manifest = build_manifest(run_plan, execution, clock, all_warnings)
        run_manifest.offline, run_manifest.checks = offline, checks
        run_manifest.failures += failures
        # the manifest, which write_results writes, lists the files that are there
        write_groups(folder.temporary, groups)
        write_tradeoffs(folder.temporary, experiment.models, experiment.metrics, metrics)
        write_results(
            folder.temporary,
            run_plan,
            execution,
            measured=metrics,
            significance=comparisons,
            manifest=run_manifest,
        )
        write = partial(write_reports, folder.temporary, **vars(experiment.report))
        attempt_reports(folder.temporary, run_manifest, write)
        with collect_warnings() as late_warnings:
            published = folder.publish()
        for warning in late_warnings:
            displayed.warned(warning)
        return Run(published)


__all__ = ["Run", "UserError", "compare", "create_executor", "data_folder", "list_runs"]
__all__ += [
    "list_stages",
    "list_warnings",
    "load",
    "plan",
    "power",
    "preview_run",
    "read_experiment",
    "run",
    "verify",
]
