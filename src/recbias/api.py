"""recbias from Python: ``run`` runs an experiment, ``list_stages`` plans it.

The functions that read results are those of ``recbias.runs``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from recbias.config.experiment import Experiment, PluginSpec, load_experiment
from recbias.config.source import find_spec
from recbias.core.context import (
    collect_warnings,
)
from recbias.core.errors import (
    Faults,
    StageError,
    UserError,
    WrongType,
)
from recbias.core.files import forbid_network
from recbias.progress import is_notebook, open_observer
from recbias.registry import REGISTRIES
from recbias.runner.checks import add_preflight, check_inputs, collect_fault, is_whole
from recbias.runner.estimate import Preview, preview
from recbias.runner.execute import (
    Executor,
    Rehearsal,
    execute,
    to_error,
)
from recbias.runner.plan import Observer, Plan, RunOptions, Spec, take_options
from recbias.runner.planner import check_experiment, has_device, make_plan, plan_stages
from recbias.runner.store import Fingerprints, Store

if TYPE_CHECKING:
    from recbias.runner.manifest import RunCost
    from recbias.runner.workers import Processes, RayTasks
    from recbias.runs.tables import Run


def read_experiment(
    spec: Path | str | Mapping[str, Any],
    overrides: Sequence[str] = (),
    check_rest: Callable[[Experiment], object] = bool,
) -> Experiment:
    """Read the experiment of a spec and build its plug-ins; Faults if the spec has any.

    ``check_rest`` raises the faults of a spec that has others already.
    """
    source = spec if isinstance(spec, Mapping) else find_spec(Path(spec))
    return load_experiment(
        source,
        registries=REGISTRIES,
        overrides=overrides,
        check_reference=_require_comparable,
        check_rest=check_rest,
    )


def _require_comparable(name: str) -> object:
    """Read the packaged tables only if a spec names one."""
    from recbias.reports.published import require_comparable

    return require_comparable(name)


def _check_parts(experiment: Experiment, options: RunOptions, store: Store) -> None:
    """Raise what is wrong with an experiment, also with the data of its parts without an error."""
    fingerprints, faults = Fingerprints(store), list[UserError]()
    with collect_fault(faults):
        check_experiment(experiment, options, fingerprints)
    sound = _select_sound_parts(experiment, Faults(faults))
    with collect_fault(faults):
        if sound is not None:
            run_plan = plan_stages(sound, options, fingerprints)
            check_inputs(run_plan, Rehearsal(store, Observer()))
    if faults:
        raise Faults(faults)


def _select_sound_parts(experiment: Experiment, faults: Faults) -> Experiment | None:
    """Return an experiment without the models and metrics that have faults."""
    document = experiment.document
    places = [fault.where.rpartition(": ")[2] for fault in faults.faults]

    def is_sound(spec: PluginSpec) -> bool:
        path = document.format_path(spec.where)
        is_blamed = any(re.match(rf"{re.escape(path)}(\W|$)", place) for place in places)
        return not is_blamed and has_device(spec, experiment)

    data = ("dataset", "split", "queries", "labels")
    sources = [dataset.source for dataset in experiment.datasets]
    filters = [spec for dataset in experiment.datasets for spec in dataset.filters]
    shared = (*sources, *filters, *filter(None, [experiment.split]), *experiment.labels)
    if not (
        is_whole(experiment, *data)
        and sources
        and all(map(is_sound, (*shared, experiment.queries)))
    ):
        return None
    models = tuple(filter(is_sound, experiment.models))
    metrics = tuple(filter(is_sound, experiment.metrics))
    return replace(experiment, models=models, metrics=metrics, seeds=experiment.seeds[:1])


@take_options(RunOptions)
def plan(spec: Spec, options: RunOptions) -> tuple[Plan, Store]:
    """Return the stages of a spec and the store they use, without running them; as ``run``."""
    if not isinstance(spec, str | Path | Mapping):
        message = f"a spec is the path of a file, a name or a mapping, not a {type(spec).__name__}"
        raise WrongType(message, remedy="give recbias.run('quickstart'), or a dict with its keys")
    folder, overrides = options.results_folder, options.overrides
    results = open_store(folder / "store", options.store)
    if isinstance(spec, Mapping):
        from recbias.runner.python_inputs import replace_python_inputs

        spec = replace_python_inputs(spec, folder / "inputs", REGISTRIES)
    if options.device is not None:
        overrides = (*overrides, f"--device={options.device}")

    def check_rest(incomplete: Experiment) -> None:
        _check_parts(incomplete, options, results)

    options = replace(options, observer=None)  # a plan can be sent to other processes
    with use_network(options):
        experiment = read_experiment(spec, overrides, check_rest)
        try:
            return make_plan(experiment, options, Fingerprints(results)), results
        except UserError:
            check_rest(experiment)
            raise


def use_network(options: RunOptions) -> AbstractContextManager[None]:
    """Forbid the network in a block if the options do."""
    return forbid_network() if options.offline else nullcontext()


@contextmanager
def observe(options: RunOptions) -> Iterator[Observer]:
    """Yield who receives the progress of a run, which uses the network as the options say."""
    shows = is_notebook() if options.progress is None else options.progress
    with use_network(options):
        if options.observer is not None:
            yield options.observer
            return
        with open_observer(quiet=not shows) as observer:
            yield observer


def open_store(folder: Path, url: str | None) -> Store:
    """Return the store in a folder, or the one at a URL with the folder as its cache."""
    if url is None:
        return Store(folder)
    from recbias.runner.store_url import open_store as open_remote

    return open_remote(folder, url)


def preview_run(run_plan: Plan, store: Store, *, fresh: bool) -> tuple[Preview, list[str]]:
    """Return what a run would do, and the datasets that are checked only when they are loaded.

    Raises:
        Faults: A run would refuse data, labels, groups or given lists.
    """
    rehearsal = Rehearsal(store, Observer(), fresh=fresh)
    with use_network(run_plan.options):
        unchecked = check_inputs(run_plan, rehearsal)
    return preview(run_plan, store, fresh=fresh, rehearsed=rehearsal.records), unchecked


STAGE_COLUMNS = ("stage", "title", "dataset", "seed", "fold", "model", "stored", "seconds")
"""The columns of ``list_stages``."""


@take_options(RunOptions)
def list_stages(spec: Spec, options: RunOptions) -> pd.DataFrame:
    """Return the stages of a spec without running them; the arguments are those of ``run``.

    Returns:
        One row for each stage, with the columns ``STAGE_COLUMNS``: ``stored`` says that its result
        is in the store, ``seconds`` how long it took.

    Raises:
        UserError: The spec has a fault.

    Example:
        recbias.plan("quickstart")["stored"].mean()
    """
    run_plan, results = plan(spec, **vars(options))
    rows = [
        (stage.kind, stage.title, *vars(stage.keys).values(), step.stored, step.seconds)
        for step in preview(run_plan, results).steps
        for stage in (step.stage,)
    ]
    return pd.DataFrame(rows, columns=list(STAGE_COLUMNS))


def create_executor(options: RunOptions) -> Processes | RayTasks:
    """Return the executor that trains the models."""
    from recbias.runner.workers import Processes, RayTasks

    return (RayTasks if options.executor == "ray" else Processes)(options.workers)


def _require_answers(run_plan: Plan, execution: Executor) -> None:
    """Raise the first failure if no model has results, since there is nothing to report."""
    answers = [
        execution.records.get(chain.answer.digest)
        for chain in run_plan.model_plans
        if chain.answer
    ]
    if any(answer is not None and answer.failure is None for answer in answers):
        return
    failures = [record for record in execution.records.values() if record.failure]
    raise to_error(failures[0]) if failures else StageError("no model has results")


@take_options(RunOptions)
def run(spec: Spec, options: RunOptions) -> Run:
    """Run or resume the experiment of a spec; return the latest run if nothing has changed since.

    The options are those of the command, by name, and ``progress`` and ``observer``; see
    ``recbias.runner.plan.RunOptions``.

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
    from recbias.runner import folder as run_folder  # plans do not need these
    from recbias.runner.manifest import RunCost
    from recbias.runs.tables import Run

    cost = RunCost()
    out = options.results_folder
    chains = create_executor(options)
    run_plan, results = plan(spec, **vars(options))
    run_folder.check_latest(out, run_plan)
    with collect_warnings() as store_warnings:
        results.prepare()
    with observe(options) as displayed:
        plan_warnings = (*run_plan.warnings, *store_warnings)
        for warning in plan_warnings:
            displayed.warned(warning)
        with chains.prepare(run_plan):
            execution = execute(run_plan, results, displayed, add_preflight(chains))
    _require_answers(run_plan, execution)
    records = [*execution.records.values()]
    address = run_folder.address_run(run_plan)
    unchanged = run_folder.find_unchanged(out, run_plan, address, records)
    if unchanged is not None:
        for warning in run_folder.list_late_warnings(unchanged):
            if warning not in plan_warnings:
                displayed.warned(warning)
        return Run(unchanged)
    cost.peak_memory_mb = max(record.peak_memory_mb or 0.0 for record in records)
    with run_folder.new_run_folder(out, run_plan) as folder:
        late = _write_files(folder.temporary, run_plan, execution, cost, plan_warnings, address)
        with collect_warnings() as last_warnings:
            published = folder.publish()
        for warning in (*late, *last_warnings):
            displayed.warned(warning)
        for name in run_plan.experiment.track:
            _track(published, name, displayed.warned)
        return Run(published)


def _track(folder: Path, tracker: str, tell: Callable[[str], None]) -> None:
    """Log a finished run; a tracker that fails is told about, and the run stays."""
    from recbias.reports.trackers import track_run

    try:
        with collect_warnings() as warnings:
            track_run(folder, tracker)
    except UserError as error:
        warnings.append(f"{error.message}; again: {error.remedy}")
    for warning in warnings:
        tell(warning)


def _write_files(
    folder: Path,
    run_plan: Plan,
    execution: Executor,
    cost: RunCost,
    plan_warnings: Sequence[str],
    address: str,
) -> list[str]:
    """Write the tables, the manifest and the reports of a run; return their warnings."""
    from recbias.reports.write import write_reports
    from recbias.runner import folder as run_folder
    from recbias.runner import results as tables
    from recbias.runner.manifest import build_manifest, describe_inputs
    from recbias.runner.significance import compare_models, write_tradeoffs
    from recbias.runner.verdicts import evaluate_claim, judge_checks

    experiment, failures = run_plan.experiment, list[Any]()
    files = run_folder.StoredFiles(
        *(folder, run_plan, Store(execution.store.folder), cost),
        reuse=not execution.fresh,
        may_keep=lambda: not (failures or any(r.failure for r in execution.records.values())),
    )
    collect = cache(partial(tables.collect_measurements, run_plan, execution))

    def write_tables(folder: Path) -> dict[str, Any]:
        tables.warn_about_zero_accuracy(experiment.models, collect())
        measured = tables.Measurements.of_run(collect(), run_plan, execution)
        tests, seed = experiment.tests, experiment.seeds[0]
        significance, failed_tests = compare_models(measured, tests, seed)
        failures.extend(failed_tests)
        checks = judge_checks(experiment, measured)
        write_tradeoffs(folder, experiment.models, experiment.metrics, measured)
        run_folder.write_tables(folder, run_plan, execution, measured, significance)
        return {**describe_inputs(run_plan, execution), "checks": checks}

    with collect_warnings() as warnings:
        facts = files.fill("tables", write_tables)
    run_manifest = build_manifest(run_plan, execution, cost, (*plan_warnings, *warnings), facts)
    run_manifest.failures += failures
    if run_plan.experiment.claim is not None:
        run_manifest.claim = evaluate_claim(run_plan, execution)
    with collect_warnings() as late_warnings:
        files.fill(
            "units",
            lambda folder: run_folder.write_units(folder, run_plan, execution, collect()),
        )
        files.fill("lists", partial(run_folder.write_answers, plan=run_plan, executor=execution))
        run_folder.write_spec(folder, run_plan, execution)
        run_folder.write_manifest(folder, run_manifest)
        settings = dict(vars(experiment.report))
        del settings["examples"]  # the page reads it from the spec, also when it is made again
        write = partial(
            write_reports,
            folder,
            **settings,
            address=address,
            store_plots=partial(files.fill, "plots"),
            measure_cost=cost.measure,
        )
        run_folder.attempt_reports(folder, run_manifest, write)
    return [*warnings, *late_warnings]
