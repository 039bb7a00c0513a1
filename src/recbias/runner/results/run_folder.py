"""A finished run as files: ``results/<name>/<run id>/``, written whole or not at all."""

from __future__ import annotations

import errno
import json
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.split import Split
from recbias.core.measurements.columns import FIT_COLUMNS
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.formats.yaml.tree import dump
from recbias.runner.boundary import attempt
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.results.metric_rows import Measured, metrics_table, per_unit_tables
from recbias.runner.results.parquet_writer import TableWriter, coded, constant
from recbias.runner.stage import Keys
from recbias.runner.stages.model import Answers
from recbias.runner.storage.store import Store, report_unwritable
from recbias.runner.tuning.search import IMPORTANCES, Found, importance_rows
from recbias.runner.tuning.trial import TRIALS, rows


@dataclass(frozen=True)
class RunFolder:
    """Where a run is being written, and where it will stand.

    Args:
        temporary: The folder that nobody reads yet.
        experiment: ``results/<name>``.
        spec: The first eight digits of the spec's hash.
    """

    temporary: Path
    experiment: Path
    spec: str

    def publish(self) -> Path:
        """Rename the folder to its run id and point ``latest`` to it; return where it stands."""
        self.experiment.mkdir(parents=True, exist_ok=True)
        while True:
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
            target = self.experiment / f"{stamp}-{self.spec}"
            try:
                self.temporary.rename(target)
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
                time.sleep(0.05)
                continue
            _point(self.experiment / "latest", target)
            return target


@contextmanager
def new_run_folder(out: Path, plan: Plan) -> Iterator[RunFolder]:
    """Yield a folder to write a run to; whatever was not published is removed.

    Raises:
        Unwritable: ``out`` cannot be written.
    """
    with report_unwritable(out), Store(out / "store").temporary() as temporary:
        yield RunFolder(temporary, out / plan.experiment.name, plan.spec_digest[:8])


def write_results(
    folder: Path,
    plan: Plan,
    walk: Executor,
    *,
    measured: Sequence[Measured],
    significance: pd.DataFrame,
    manifest: dict[str, Any],
) -> None:
    """Write every file of a run but the reports."""
    searches = found_by(plan, walk)
    spec = dump(plan.experiment.as_spec()) + "".join(_remarks(searches))
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")
    if searches:
        _write_searches(folder, searches)
    metrics_table(measured).to_csv(folder / "metrics.csv", index=False, lineterminator="\n")
    significance.to_csv(folder / "significance.csv", index=False, lineterminator="\n")
    with TableWriter(folder / "per_unit.parquet") as units:
        for table in per_unit_tables(measured):
            units.add(table)
    _write_lists(folder, plan, walk)
    _write_manifest(folder, manifest)


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, ensure_ascii=False, default=str)
    (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")


def attempt_reports(folder: Path, manifest: dict[str, Any], write: Callable[[], object]) -> None:
    """Write the reports of a run; where that fails the manifest says so, and the figures stay.

    Args:
        folder: The folder that ``write_results`` wrote to.
        manifest: What it wrote as the manifest.
        write: Writes the reports.

    Raises:
        Unwritable: The folder cannot be written.
    """
    _, failure = attempt(write)
    if failure is not None:
        help_ = failure.help or "the figures are published; `recbias report` writes the rest again"
        where = {
            "stage": "write the reports",
            "dataset": "",
            "model": "",
            "seed": None,
            "fold": None,
        }
        told = {**where, **asdict(replace(failure, help=help_))}
        _write_manifest(folder, manifest | {"failures": [*manifest["failures"], told]})


def found_by(plan: Plan, walk: Executor) -> list[tuple[ModelPlan, Found]]:
    """Return what each search found, in the order of the plan; one that failed is left out."""
    found = []
    for chain in plan.model_plans:
        record = walk.records.get(chain.search.digest) if chain.search is not None else None
        if chain.search is not None and record is not None and record.failure is None:
            found.append((chain, walk.value(chain.search)))
            walk.forget((chain.search,))
    return found


def place(chain: ModelPlan) -> dict[str, Any]:
    """Return which dataset, model, seed and fold a chain is of."""
    keys = chain.data_context.keys
    where = (keys.dataset, chain.model.label, keys.seed, keys.fold)
    return dict(zip(FIT_COLUMNS, where, strict=True))


def _write_searches(folder: Path, searches: Sequence[tuple[ModelPlan, Found]]) -> None:
    tried = [row for chain, found in searches for row in rows(found.trials, place(chain))]
    trials = pd.DataFrame(tried, columns=list(TRIALS)).astype({"epochs": "Int64"})
    trials.to_csv(folder / "trials.csv", index=False, lineterminator="\n")
    weighed = [row for chain, found in searches for row in importance_rows(found, place(chain))]
    importances = pd.DataFrame(weighed, columns=list(IMPORTANCES))
    importances.to_csv(folder / "importances.csv", index=False, lineterminator="\n")


def _remarks(searches: Sequence[tuple[ModelPlan, Found]]) -> Iterator[str]:
    """Yield what was chosen as remarks, which leave the spec as it is: to be searched again."""
    for chain, found in searches:
        keys = chain.data_context.keys
        at = f"{chain.model.label} on {keys.dataset}, seed {keys.seed}, fold {keys.fold}"
        yield f"# chosen for {at}: {json.dumps(found.best.settings, ensure_ascii=False)}\n"


def _write_lists(folder: Path, plan: Plan, walk: Executor) -> None:
    with (
        TableWriter(folder / "lists.parquet") as lists,
        TableWriter(folder / "popularity.parquet") as popularity,
    ):
        for world in plan.data_contexts:
            split: Split = walk.value(world.split)
            queries: Queries = walk.value(world.queries)
            popularity.add(_popularity(split, world.keys))
            for chain in plan.model_plans:
                if chain.data_context is not world or chain.answer is None:
                    continue
                record = walk.records.get(chain.answer.digest)
                if record is None or record.failure is not None:
                    continue
                answers: Answers = walk.value(chain.answer)
                if answers.lists is not None:
                    lists.add(_lists(chain, answers.lists, queries, split))
                walk.forget((chain.answer,))
            walk.forget((world.split, world.queries))


def _popularity(split: Split, keys: Keys) -> dict[str, Any]:
    n = split.train.n_items
    return {
        "dataset": constant(keys.dataset, n),
        "seed": np.full(n, keys.seed),
        "fold": np.full(n, keys.fold),
        "item_id": coded(np.arange(n), split.train.item_ids.ids),
        "interactions": split.train.item_counts(),
    }


def _lists(chain: ModelPlan, lists: RankedLists, queries: Queries, split: Split) -> dict[str, Any]:
    keys = chain.data_context.keys
    rows, columns = np.nonzero(lists.filled)
    return {
        "dataset": constant(keys.dataset, rows.size),
        "model": constant(chain.model.label, rows.size),
        "seed": np.full(rows.size, keys.seed),
        "fold": np.full(rows.size, keys.fold),
        "query_id": coded(rows, queries.ids.ids),
        "rank": (columns + 1).astype(np.int32),
        "item_id": coded(
            lists.items[lists.filled],
            np.concatenate([split.train.item_ids.ids, lists.outside]),
        ),
        "score": lists.scores[lists.filled],
    }


def _point(link: Path, target: Path) -> None:
    """Point ``latest`` to a run by one rename, so that there is always a whole one behind it."""
    new = link.with_name(f".latest-{uuid.uuid4().hex}")
    new.symlink_to(target.name)
    new.replace(link)


def stage_records(walk: Executor) -> list[dict[str, Any]]:
    """Return what happened to every stage, as plain data."""
    return [asdict(record) for record in walk.records.values()]
