"""Results of a run in MLflow and Weights & Biases."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from recbias.core.context import warn
from recbias.core.errors import ServiceError
from recbias.core.files import has_file
from recbias.core.packages import TRACKERS, require_packages
from recbias.reports import views
from recbias.reports.run import RunTables, read_run, to_records
from recbias.reports.wording import ungroup
from recbias.runner.boundary import attempt

_FILES = ("spec.yaml", "metrics.csv", "significance.csv", "report.html", "report.json")
_FACTS = ("spec_digest", "recbias", "commit")
_OF_THE_SPEC = ("dataset", "split", "queries", "k", "seed", "seeds")

_WORDS = str.maketrans({"@": "_at_", "=": ":", "&": " and ", "(": " ", ")": "", ",": ""})


@dataclass(frozen=True)
class _Part:
    """What a tracker calls a run: the run with its files, or one model of it on a dataset."""

    title: str
    parameters: Mapping[str, Any]
    metrics: dict[str, float] = field(default_factory=dict)


def track_run(folder: Path, tracker: str) -> None:
    """Log a finished run: its values with intervals, its spec and its reports.

    Each model on each dataset is a run of the tracker, below one for the whole, or in its group.
    The values are those of the reports: means over seeds and folds where there are several. A
    value has the key ``nDCG_at_10``, of a group ``nDCG_at_10.gender:F``, and its interval the same
    with ``.ci_low`` and ``.ci_high``. An undefined value has no key.

    Args:
        folder: The run folder.
        tracker: ``mlflow`` or ``wandb``; where it is and who logs in, say its own environment
            variables.

    Raises:
        MissingExtra: Its package is not installed.
        ServiceError: It refused, or could not be reached.
    """
    require_packages(tracker, TRACKERS[tracker])
    run = read_run(folder)
    log: Callable[[RunTables, list[_Part]], None] = {"mlflow": _log_mlflow, "wandb": _log_wandb}[
        tracker
    ]
    with contextlib.redirect_stdout(sys.stderr):  # where MLflow prints addresses of its pages
        _, failure = attempt(lambda: log(run, [*_list_parts(run)]))
    if failure is not None:
        message = f"the run is complete, but {tracker} has not got all of it: {failure.message}"
        remedy = f"recbias report {shlex.quote(str(folder))} --track {tracker}"
        raise ServiceError(message, remedy=remedy)


def _list_parts(run: RunTables) -> Iterator[_Part]:
    chosen = {
        name: value if isinstance(value, (str, int)) else json.dumps(value)
        for name, value in run.spec.items()
        if name in _OF_THE_SPEC
    }
    yield _Part(run.folder.name, chosen)
    estimates = views.select_headline(run, views.collect_estimates(run))
    settings = {model["label"]: model.get("parameters") for model in run.manifest["models"]}
    for (dataset, model), rows in estimates.groupby(["dataset", "model"], sort=False):
        part = _Part(
            str(model), {**(settings.get(model) or {}), "label": model, "dataset": dataset}
        )
        for row in to_records(rows.dropna(subset=["value"])):
            title = views.format_title(row["metric"], row["k"])
            names = [ungroup(title) if row["group"] else title, row["group"], row["target"]]
            key = ".".join(_make_key(name) for name in names if name)
            if key in part.metrics:
                warn(f"{key} of {model} stands for two values, of which the first is logged")
                continue
            values = {key: row["value"], f"{key}.ci_low": row["ci_low"]}
            values[f"{key}.ci_high"] = row["ci_high"]
            part.metrics.update({k: v for k, v in values.items() if not math.isnan(v)})
        yield part


def _make_key(name: str) -> str:
    """Return a name in the characters that MLflow allows.

    >>> _make_key("nDCG(by=gender, gap=ratio)@10"), _make_key("price=$$")
    ('nDCG by:gender gap:ratio_at_10', 'price:__')
    """
    words = str(name).translate(_WORDS)
    return "".join(letter if letter.isalnum() or letter in "_-.: " else "_" for letter in words)


def _list_files(run: RunTables) -> list[Path]:
    return [path for name in _FILES if has_file(path := run.folder / name)]


def _log_mlflow(run: RunTables, parts: list[_Part]) -> None:
    import mlflow

    tags = {f"recbias.{name}": str(run.manifest.get(name)) for name in _FACTS}
    chosen = None  # by the run around this one, or by the environment
    is_chosen = {"MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"} & {*os.environ}
    if not is_chosen and mlflow.active_run() is None:
        name = run.manifest["name"]
        known = mlflow.get_experiment_by_name(name)
        chosen = known.experiment_id if known else mlflow.create_experiment(name)
    whole, *models = parts
    start = partial(mlflow.start_run, experiment_id=chosen, tags=tags, nested=True)
    with start(run_name=whole.title):
        mlflow.log_params(whole.parameters)
        for path in _list_files(run):
            mlflow.log_artifact(str(path))
        for part in models:
            with start(run_name=part.title):
                mlflow.log_params(part.parameters)
                mlflow.log_metrics(part.metrics)


def _log_wandb(run: RunTables, parts: list[_Part]) -> None:
    import wandb

    facts = {f"recbias_{name}": run.manifest.get(name) for name in _FACTS}
    for part in parts:
        with wandb.init(
            project=os.environ.get("WANDB_PROJECT", run.manifest["name"]),
            group=run.folder.name,
            name=part.title,
            job_type="report" if part is parts[0] else "model",
            config={**facts, **part.parameters},
            reinit="create_new",
            settings=wandb.Settings(console="off", silent=True),
        ) as logged:
            if part is not parts[0]:
                logged.log(part.metrics)
                continue
            reports = wandb.Artifact(run.folder.name, type="report")
            for path in _list_files(run):
                reports.add_file(str(path))
            logged.log_artifact(reports)
