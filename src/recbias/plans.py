"""The plan of an experiment: its stages and the store that they use, without running them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.config.experiment import Experiment, PluginSpec
from recbias.config.load_experiment import load_experiment
from recbias.config.packaged_specs import find_spec
from recbias.core.errors import Faults, OutOfRange, UserError, WrongType
from recbias.registry import REGISTRIES
from recbias.reports.published_tables.compare_published import require_comparable
from recbias.runner.execution.executor import Silent
from recbias.runner.execution.preflight import check_inputs
from recbias.runner.execution.rehearsal import Rehearsal
from recbias.runner.options import RunOptions, Spec, take_options
from recbias.runner.planning.compatibility import is_whole
from recbias.runner.planning.devices import has_device, warn_about_device
from recbias.runner.planning.plan import Plan
from recbias.runner.planning.planner import check_experiment, make_plan, plan_stages
from recbias.runner.planning.preview import Preview, preview
from recbias.runner.storage.fingerprints import Fingerprints
from recbias.runner.storage.python_inputs import replace_python_inputs
from recbias.runner.storage.remote_store import open_store
from recbias.runner.storage.store import Store


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
        check_reference=require_comparable,
        check_rest=check_rest,
    )


def check_parts(experiment: Experiment, options: RunOptions, store: Store) -> None:
    """Raise what is wrong with an experiment, also with the data of its parts without an error.

    Raises:
        Faults: There is one fault or more.
    """
    fingerprints = Fingerprints(store)
    try:
        check_experiment(experiment, options, fingerprints)
    except UserError as error:
        faults = Faults([error])
    else:
        faults = Faults([])
    data_faults: list[UserError] = []
    if (sound := select_sound_parts(experiment, faults)) is not None:
        try:
            run_plan = plan_stages(sound, options, fingerprints)
            check_inputs(run_plan, Rehearsal(store, Silent()))
        except UserError as error:
            data_faults.append(error)
    if faults.faults or data_faults:
        raise Faults([faults, *data_faults])


def select_sound_parts(experiment: Experiment, faults: Faults) -> Experiment | None:
    """Return an experiment without the models and metrics that have faults.

    None if the data themselves have faults, so that nothing can be said about the others.
    """
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
    if options.limit is not None and options.limit < 1:
        raise OutOfRange("must be at least 1", where="--limit", remedy="give a number of queries")
    folder, overrides = options.results_folder, options.overrides
    results = open_store(folder / "store", options.store)
    if isinstance(spec, Mapping):
        spec = replace_python_inputs(spec, folder / "inputs", REGISTRIES)
    if options.device is not None:
        overrides = (*overrides, f"--device={options.device}")

    def check_rest(incomplete: Experiment) -> None:
        check_parts(incomplete, options, results)

    options = replace(options, observer=None)  # a plan can be sent to other processes
    experiment = read_experiment(spec, overrides, check_rest)
    try:
        return make_plan(experiment, options, Fingerprints(results)), results
    except UserError:
        check_rest(experiment)
        raise


def list_warnings(run_plan: Plan) -> tuple[str, ...]:
    """Return what is worth knowing before a run, such as a device that no model uses."""
    unused = warn_about_device(run_plan.experiment, REGISTRIES["models"])
    return (*run_plan.warnings, *unused)


def preview_run(run_plan: Plan, store: Store, *, fresh: bool) -> tuple[Preview, list[str]]:
    """Return what a run would do, and the datasets that are checked only when they are loaded.

    Raises:
        Faults: A run would refuse data, labels, groups or given lists.
    """
    rehearsal = Rehearsal(store, Silent(), fresh=fresh)
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
