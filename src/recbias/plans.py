"""The plan of an experiment: its stages and the store that they use, without running them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.config.experiment import Experiment
from recbias.config.load_experiment import load_experiment
from recbias.config.packaged_specs import find_spec
from recbias.core.errors import OutOfRange, WrongType
from recbias.core.input_files import to_local_path
from recbias.registry import REGISTRIES
from recbias.reports.published_tables.compare_published import require_comparable
from recbias.runner.execution.executor import Silent
from recbias.runner.execution.preflight import check_inputs
from recbias.runner.execution.rehearsal import Rehearsal
from recbias.runner.planning.devices import warn_about_device
from recbias.runner.planning.plan import Options, Plan
from recbias.runner.planning.planner import make_plan
from recbias.runner.planning.preview import Preview, preview
from recbias.runner.storage.fingerprints import Fingerprints
from recbias.runner.storage.python_inputs import replace_python_inputs
from recbias.runner.storage.remote_store import open_store
from recbias.runner.storage.store import Store


def data_folder(data: Path | str | None = None) -> Path:
    """Return the folder of datasets: the one given, else ``$RECBIAS_DATA``, else ``data``."""
    return to_local_path(data or os.environ.get("RECBIAS_DATA") or "data")


def read_experiment(
    spec: Path | str | Mapping[str, Any], overrides: Sequence[str] = ()
) -> Experiment:
    """Read the experiment of a spec and build its plug-ins; Faults if the spec has any."""
    source = spec if isinstance(spec, Mapping) else find_spec(Path(spec))
    return load_experiment(
        source, registries=REGISTRIES, overrides=overrides, check_reference=require_comparable
    )


def plan(  # noqa: PLR0913  the options of the command, each by name
    spec: Path | str | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    out: Path | str = "results",
    data: Path | str | None = None,
    limit: int | None = None,
    device: str | None = None,
    store: str | None = None,
) -> tuple[Plan, Store]:
    """Return the stages of a spec and the store they use, without running them; as ``run``."""
    if not isinstance(spec, str | Path | Mapping):
        message = f"a spec is the path of a file, a name or a mapping, not a {type(spec).__name__}"
        raise WrongType(message, remedy="give recbias.run('quickstart'), or a dict with its keys")
    if limit is not None and limit < 1:
        raise OutOfRange("must be at least 1", where="--limit", remedy="give a number of queries")
    results = open_store(to_local_path(out) / "store", store)
    if isinstance(spec, Mapping):
        spec = replace_python_inputs(spec, to_local_path(out) / "inputs", REGISTRIES)
    if device is not None:
        overrides = (*overrides, f"--device={device}")
    experiment = read_experiment(spec, overrides)
    options = Options(data_folder(data), limit)
    return make_plan(experiment, options, Fingerprints(results)), results


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


def list_stages(
    spec: Path | str | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    out: Path | str = "results",
    data: Path | str | None = None,
    limit: int | None = None,
    store: str | None = None,
) -> pd.DataFrame:
    """Return the stages of a spec without running them; the arguments are those of ``run``.

    Returns:
        One row for each stage, with the columns ``STAGE_COLUMNS``: ``stored`` says that its result
        is in the store, ``seconds`` how long it took.

    Raises:
        UserError: The spec has a fault.

    Example:
        recbias.plan("quickstart")["stored"].mean()
    """
    run_plan, results = plan(
        spec, overrides=overrides, out=out, data=data, limit=limit, store=store
    )
    rows = [
        (stage.kind, stage.title, *vars(stage.keys).values(), step.stored, step.seconds)
        for step in preview(run_plan, results).steps
        for stage in (step.stage,)
    ]
    return pd.DataFrame(rows, columns=list(STAGE_COLUMNS))
