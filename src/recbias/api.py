"""recbias from Python: ``run`` runs an experiment; the other functions read its results."""

from __future__ import annotations

import time
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial

from recbias.core.errors import UserError
from recbias.core.machine.operating_system import measure_peak_memory_mb
from recbias.core.network import forbid_network
from recbias.core.stage_context import collect_warnings
from recbias.plans import (
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
from recbias.runner.execution.executor import execute
from recbias.runner.execution.needed_stages import look_up_results
from recbias.runner.execution.preflight import add_preflight
from recbias.runner.options import RunOptions, Spec, data_folder, take_options
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


@take_options(RunOptions)
def run(spec: Spec, options: RunOptions) -> Run:
    """Run or resume the experiment of a spec.

    The options are those of the command, by name, and ``progress`` and ``observer``; see
    ``recbias.runner.options.RunOptions``.

    Args:
        spec: The experiment file, the name of a packaged spec, or the content as a mapping, in
            which data frames and arrays may stand for files, and objects for entries of models,
            metrics and tests.
        options: The options.

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
    out, fresh = options.results_folder, options.fresh
    require_choice("--on-error", options.on_error, ("stop", "continue"))
    chains = create_executor(options.executor, options.workers)
    run_plan, results = plan(spec, **vars(options))
    check_latest(out, run_plan)
    with collect_warnings() as store_warnings:
        results.prepare()
    if not fresh:
        look_up_results(run_plan, results)
    shows = is_notebook() if options.progress is None else options.progress
    observer = options.observer
    with (
        forbid_network() if options.offline else nullcontext(),
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
                stop=options.on_error == "stop",
                run_models=add_preflight(chains),
                workers=options.workers,
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
        run_manifest.offline, run_manifest.checks = options.offline, checks
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
