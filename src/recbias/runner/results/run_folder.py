"""The files of a run in ``results/<name>/<run id>/``, published all at once."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core.dataset.split import Split
from recbias.core.digests import digest_file
from recbias.core.errors import Unwritable
from recbias.core.machine.operating_system import point_link
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.queries.queries import Queries
from recbias.core.records import Failure
from recbias.core.stage_context import warn
from recbias.formats.manifest import FailedStep, Manifest
from recbias.formats.yaml import dump
from recbias.runner.boundary import attempt
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.results.group_rows import build_groups_table
from recbias.runner.results.metric_rows import (
    ModelMeasurement,
    build_metrics_table,
    make_fit_keys,
)
from recbias.runner.results.parquet_writer import TableWriter, encode_column, encode_constant
from recbias.runner.results.response_lines import write_label_replies, write_response_lines
from recbias.runner.results.round_rows import write_rounds
from recbias.runner.results.supplements import QueryDigests, write_supplements
from recbias.runner.results.training_tables import (
    describe_searches,
    list_searches,
    write_learning_curves,
    write_searches,
)
from recbias.runner.stage import Stage
from recbias.runner.stages.model_outputs import ModelOutputs
from recbias.runner.storage.store import Store, report_unwritable

REFERENCE = "reference.csv"
"""A table that `recbias report` may write again."""


@dataclass(frozen=True)
class RunFolder:
    """A folder of results that is not published yet.

    Args:
        temporary: The folder, in one that is removed with it.
        experiment: ``results/<name>``.
        spec: The first eight digits of the spec's digest.
    """

    temporary: Path
    experiment: Path
    spec: str

    def publish(self) -> Path:
        """Rename the folder to its run id, point ``latest`` to it, and return its path."""
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
            self._point_latest(target.name)
            return target

    def _point_latest(self, name: str) -> None:
        """Point ``latest`` to a run; the run is published also where this fails."""
        link = self.experiment / "latest"
        try:
            point_link(link, name, scratch=self.temporary.parent)
        except OSError as error:
            warn(f"{link} does not lead to this run: it cannot be replaced: {error.strerror}")


def check_latest(out: Path, plan: Plan) -> None:
    """Raise Unwritable if something else lies where a run and its link ``latest`` are written."""
    experiment = out / plan.experiment.name
    if experiment.exists() and not experiment.is_dir():
        message = "it is not a folder, and recbias writes runs there"
        raise Unwritable(message, where=str(experiment), remedy="rename the file")
    link = experiment / "latest"
    if link.is_dir() and not link.is_symlink():
        message = "it is a folder, and recbias writes a link to the latest run there"
        raise Unwritable(message, where=str(link), remedy="rename the folder")


@contextmanager
def new_run_folder(out: Path, plan: Plan) -> Iterator[RunFolder]:
    """Yield a folder for the results of a run; it is removed unless it is published.

    Raises:
        Unwritable: ``out`` cannot be written.
    """
    with report_unwritable(out), Store(out / "store").temporary() as temporary:
        (folder := temporary / "run").mkdir()
        yield RunFolder(folder, out / plan.experiment.name, plan.spec_digest[:8])


def write_results(
    folder: Path,
    plan: Plan,
    executor: Executor,
    *,
    measured: Sequence[ModelMeasurement],
    significance: pd.DataFrame,
    manifest: Manifest,
) -> None:
    """Write every file of a run except the reports."""
    searches = list_searches(plan, executor)
    spec = dump(plan.experiment.as_spec()) + "".join(describe_searches(searches))
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")
    if searches:
        write_searches(folder, searches)
    _write_csv(folder / "metrics.csv", build_metrics_table(measured))
    _write_csv(folder / "significance.csv", significance)
    write_supplements(folder, measured, _digest_queries(plan, executor))
    _write_lists(folder, plan, executor)
    write_label_replies(folder / "label_replies.jsonl", plan, executor)
    write_learning_curves(folder, plan, executor)
    write_rounds(folder, plan, executor)
    _write_manifest(folder, manifest)


def write_groups(folder: Path, groups: Sequence[ModelMeasurement]) -> None:
    """Write ``groups.csv`` if the run has metrics by group."""
    if groups:
        _write_csv(folder / "groups.csv", build_groups_table(groups))


def _digest_queries(plan: Plan, executor: Executor) -> QueryDigests:
    """Return the digest of the queries of each dataset, seed and fold."""
    contexts: dict[tuple[str, int | str, int | str], Stage] = {
        (context.keys.dataset, context.keys.seed or 0, context.keys.fold or 0): context.queries
        for context in plan.data_contexts
    }
    return {keys: executor.value(stage).ids.digest for keys, stage in contexts.items()}


def _write_csv(path: Path, table: pd.DataFrame) -> None:
    table.to_csv(path, index=False, lineterminator="\n")


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with the size in bytes and the SHA-256 digest of each table.

    A reader refuses another size; `recbias verify` names another digest.
    """
    suffixes = {".csv", ".jsonl", ".parquet"}
    tables = [path for path in sorted(folder.iterdir()) if path.suffix in suffixes]
    tables = [path for path in tables if path.name != REFERENCE]
    files = {path.name: path.stat().st_size for path in tables}
    digests = {path.name: digest_file(path) for path in tables}
    content = manifest.model_copy(update={"files": files, "digests": digests})
    (folder / "manifest.json").write_text(content.render(), encoding="utf-8")


def attempt_reports(folder: Path, manifest: Manifest, write: Callable[[], object]) -> None:
    """Write the reports of a run; a failure is recorded in its manifest, and the results stay.

    Raises:
        Unwritable: The folder cannot be written.
    """
    _, failure = attempt(write)
    if failure is None:
        return
    remedy = failure.help or "the results are published; `recbias report` writes the reports again"
    record = describe_failure("write the reports", replace(failure, help=remedy))
    failures = [*manifest.failures, record]
    _write_manifest(folder, manifest.model_copy(update={"failures": failures}))


def describe_failure(step: str, failure: Failure) -> FailedStep:
    """Return a failure after the stages as the manifest lists it."""
    return FailedStep(stage=step, dataset="", model="", seed=None, fold=None, **asdict(failure))


def _write_lists(folder: Path, plan: Plan, executor: Executor) -> None:
    with (
        TableWriter(folder / "lists.parquet") as lists,
        TableWriter(folder / "popularity.parquet") as popularity,
    ):
        for context in plan.data_contexts:
            split: Split = executor.value(context.split)
            queries: Queries = executor.value(context.queries)
            n, keys = split.train.n_items, context.keys
            popularity.add(
                {
                    "dataset": encode_constant(keys.dataset, n),
                    "seed": np.full(n, keys.seed),
                    "fold": np.full(n, keys.fold),
                    "item_id": encode_column(np.arange(n), split.train.item_ids.ids),
                    "interactions": split.train.item_counts(),
                }
            )
            for model_plan in plan.model_plans:
                answer = model_plan.answer
                if model_plan.data_context is not context or answer is None:
                    continue
                if executor.has_succeeded(answer):
                    outputs: ModelOutputs = executor.value(answer)
                    if outputs.lists is not None:
                        for rows in _build_lists(model_plan, outputs.lists, queries, split):
                            lists.add(rows)
                    if outputs.responses is not None and len(outputs.responses):
                        lines = write_response_lines(outputs.responses, make_fit_keys(model_plan))
                        with (folder / "responses.jsonl").open("a", encoding="utf-8") as stream:
                            stream.writelines(lines)
                    executor.forget((answer,))
            executor.forget((context.split, context.queries))


def _build_lists(
    model_plan: ModelPlan, lists: RankedLists, queries: Queries, split: Split
) -> Iterator[dict[str, Any]]:
    keys, size = model_plan.data_context.keys, max(1, TableWriter.GROUP // max(lists.k, 1))
    item_ids = np.concatenate([split.train.item_ids.ids, lists.outside])
    for start in range(0, len(lists), size):
        block = lists.take(slice(start, start + size))
        rows, columns = np.nonzero(block.filled)
        yield {
            "dataset": encode_constant(keys.dataset, rows.size),
            "model": encode_constant(model_plan.model.label, rows.size),
            "seed": np.full(rows.size, keys.seed),
            "fold": np.full(rows.size, keys.fold),
            "query_id": encode_column(rows + start, queries.ids.ids),
            "rank": (columns + 1).astype(np.int32),
            "item_id": encode_column(block.items[block.filled], item_ids),
            "score": block.scores[block.filled],
        }
