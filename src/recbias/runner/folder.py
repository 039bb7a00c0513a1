"""The files of a run in ``results/<name>/<run id>/``, published all at once."""

from __future__ import annotations

import errno
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.core import measures
from recbias.core.context import StageRecord, Stored, collect_warnings, warn
from recbias.core.dataset import AnyArray, Ids, Queries, Split
from recbias.core.errors import Unwritable
from recbias.core.evidence import RankedLists, Responses
from recbias.core.files import compute_digest, digest_file, has_file
from recbias.core.machine import measure_peak_memory_mb, point_link, reset_peak_memory
from recbias.formats.manifest import Manifest, parse_manifest
from recbias.formats.yaml import dump
from recbias.runner.address import describe_environment, digest_own_sources, digest_package
from recbias.runner.boundary import attempt
from recbias.runner.execute import Executor
from recbias.runner.manifest import RunCost, describe_failure, list_searches
from recbias.runner.plan import ModelPlan, Plan
from recbias.runner.results import (
    Measurements,
    ModelMeasurement,
    Place,
    locate,
    make_fit_keys,
)
from recbias.runner.store import Store, report_unwritable

_REFERENCE = "reference.csv"
"""A table that `recbias report` may write again."""


@dataclass(frozen=True)
class RunFolder:
    """A folder of results that is not published yet."""

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


def address_run(plan: Plan) -> str:
    """Return the digest of everything that the files of a run depend on, but the time."""
    return compute_digest(
        {
            "spec": plan.spec_digest,
            "stages": [stage.digest for stage in plan.stages],
            "options": plan.options.recorded,
            "code": _digest_code(plan),
            "environment": describe_environment(),
        }
    )


def _digest_code(plan: Plan) -> list[str]:
    return [digest_package(), digest_own_sources(test.plugin for test in plan.experiment.tests)]


def find_unchanged(
    out: Path, plan: Plan, address: str, records: Sequence[StageRecord]
) -> Path | None:
    """Return the latest run if a run would write the same files, and they are as it wrote them."""
    latest = out / plan.experiment.name / "latest"
    try:
        known = parse_manifest((latest / "manifest.json").read_bytes())
    except (OSError, ValueError):
        return None
    if known.address != address or known.failures or not all(record.reused for record in records):
        return None
    files = {**known.digests, **known.reports}
    if all(
        has_file(latest / name) and digest_file(latest / name) == files[name] for name in files
    ):
        return latest.resolve()
    return None


def list_late_warnings(run: Path) -> list[str]:
    """Return the warnings of a run that came from none of its stages."""
    known = parse_manifest((run / "manifest.json").read_bytes())
    records = [(record["stage"], record.get("warnings", ())) for record in known.stages]
    early = {f"{stage}: {warning}" for stage, warnings in records for warning in warnings}
    return [warning for warning in known.warnings if warning not in early]


@contextmanager
def new_run_folder(out: Path, plan: Plan) -> Iterator[RunFolder]:
    """Yield a folder for the results of a run; it is removed unless it is published.

    Raises:
        Unwritable: ``out`` cannot be written.
    """
    with report_unwritable(out), Store(out / "store").temporary() as temporary:
        (folder := temporary / "run").mkdir()
        yield RunFolder(folder, out / plan.experiment.name, plan.spec_digest[:8])


_UNUSED: Mapping[str, frozenset[str]] = {
    "tables": frozenset({"report", "claim"}),
    "plots": frozenset({"report"}),
    "units": frozenset({"report", "claim", "checks", "tests"}),
    "lists": frozenset({"report", "claim", "checks", "tests", "metrics"}),
}
"""The keys of a spec that files do not depend on; the others, and the stages, are the address."""


@dataclass(frozen=True)
class StoredFiles:
    """The files of a run that are stored, and put into the folders of later runs.

    Args:
        folder: The run folder.
        reuse: Whether stored files may be reused.
        may_keep: Whether files that were just made may be stored: not those of failed stages.
    """

    folder: Path
    plan: Plan
    store: Store
    cost: RunCost
    reuse: bool
    may_keep: Callable[[], bool]

    def fill(self, name: str, write: Callable[[Path], dict[str, Any] | None]) -> dict[str, Any]:
        """Put files into the run folder: those at their address, else what ``write`` makes.

        ``write`` gets an empty folder, and returns what is to be known of the files later. Its
        warnings are repeated where the files are reused.
        """
        digest = self._address(name)
        stored = self.store.place(digest, self.folder) if self.reuse else None
        if stored is not None:
            for warning in stored.warnings:
                warn(warning)
            return stored.facts
        self.cost.measure()
        reset_peak_memory()
        start = time.perf_counter()
        with self.store.temporary() as new:
            with collect_warnings() as warnings:
                facts = write(new) or {}
            if self.may_keep():
                record = Stored(
                    *(f"write {name}", "files", {}, time.perf_counter() - start),
                    *(measure_peak_memory_mb(), tuple(warnings), facts, name),
                )
                self.store.save(digest, new, record, replace=True)
            for path in new.iterdir():
                path.rename(self.folder / path.name)
        for warning in warnings:
            warn(warning)
        return facts

    def _address(self, name: str) -> str:
        spec = self.plan.experiment.as_spec()
        kinds = {"measure"} if "metrics" in _UNUSED[name] else set()
        return compute_digest(
            {
                "files": name,
                "spec": {key: spec[key] for key in spec if key not in _UNUSED[name]},
                "stages": [stage.digest for stage in self.plan.stages if stage.kind not in kinds],
                "code": _digest_code(self.plan),
                "libraries": describe_environment()["libraries"],
            }
        )


# ---- what is written into it ----


def write_spec(folder: Path, plan: Plan, executor: Executor) -> None:
    """Write ``spec.yaml``, with the settings that were found as comments: it searches again."""
    spec = dump(plan.experiment.as_spec())
    for model_plan, search in list_searches(plan, executor):
        keys, settings = model_plan.data_context.keys, search.best.settings
        fit = f"{model_plan.model.label} on {keys.dataset}, seed {keys.seed}, fold {keys.fold}"
        spec += f"# chosen for {fit}: {json.dumps(settings, ensure_ascii=False)}\n"
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")


def write_tables(
    folder: Path,
    plan: Plan,
    executor: Executor,
    measured: Measurements,
    significance: pd.DataFrame,
) -> None:
    """Write the tables of values, tests and searches."""
    _write_searches(folder, plan, executor)
    measures.METRICS.write(folder, measured.table)
    measures.SIGNIFICANCE.write(folder, significance)
    if measured.groups:
        rows = (group.row() for group in measured.groups if group.measurement.group)
        measures.GROUPS.write(folder, rows)


def _write_searches(folder: Path, plan: Plan, executor: Executor) -> None:
    """Write ``trials.csv`` and ``importances.csv``; no files without a search."""
    trials: list[dict[str, Any]] = []
    importances: list[dict[str, Any]] = []
    for model_plan, search in list_searches(plan, executor):
        fit_keys = make_fit_keys(model_plan)
        trials += (
            {
                **fit_keys,
                "trial": trial.number,
                "value": trial.value,
                "state": trial.state,
                "seconds": round(trial.seconds, 3),
                "epochs": len(trial.curve) or None,
                "settings": json.dumps(trial.settings, ensure_ascii=False),
            }
            for trial in search.trials
        )
        importances += (
            {**fit_keys, "setting": name, "importance": share}
            for name, share in search.importances.items()
        )
    if trials:
        measures.TRIALS.write(folder, trials)
        measures.IMPORTANCES.write(folder, importances)


def write_units(
    folder: Path, plan: Plan, executor: Executor, measured: Sequence[ModelMeasurement]
) -> None:
    """Write what is behind the values: units, bootstrap samples, counts and directions."""
    digests = {
        locate(context.keys): executor.value(context.queries).ids.digest
        for context in plan.data_contexts
    }
    _write_parquet(folder / "per_unit.parquet", _build_unit_chunks(measured))
    _write_parquet(folder / "replicates.parquet", _build_replicate_chunks(measured, digests))
    if counts := [row for value in measured for row in _list_counts(value)]:
        measures.COUNTS.write(folder, counts)
    _write_directions(folder, measured)


def _build_unit_chunks(measured: Iterable[ModelMeasurement]) -> Iterator[dict[str, Any]]:
    for row in measured:
        units = row.measurement.units
        if units is None or units.errors is not None:  # of which no mean has the interval alone
            continue
        n = units.values.size
        yield {
            **_repeat_keys(row.fit_keys | {"unit": units.unit}, n),
            "unit_id": _encode_column(np.arange(n), units.ids),
            **_repeat_keys(row.metric_keys, n),
            "value": units.values,
        }


def _build_replicate_chunks(
    measured: Iterable[ModelMeasurement], query_digests: Mapping[Place, str]
) -> Iterator[dict[str, Any]]:
    """Yield the columns of the bootstrap samples of values of whole sets.

    Values of a target are excluded, since there may be many thousands, and those of several seeds
    or folds. Runs with the same digest of the queries share their samples.
    """
    for row in measured:
        replicates, units = row.measurement.replicates, row.measurement.units
        if replicates is None or units is not None or row.measurement.target or row.is_pooled:
            continue
        n, keys = replicates.size, row.fit_keys | row.metric_keys
        yield {
            **_repeat_keys(keys | {"queries": query_digests[row.place]}, n),
            "df": np.full(n, row.measurement.df, dtype=np.float64),
            "log_scale": np.full(n, row.measurement.log_scale),
            "value": replicates,
        }


def _list_counts(value: ModelMeasurement) -> list[dict[str, Any]]:
    counts = value.measurement.counts
    if counts is None:
        return []
    keys = value.fit_keys | value.metric_keys
    numbered = [f"count_{number}" for number in range(1, counts.size + 1)]
    names = getattr(value.metric.plugin, "count_names", numbered)
    rows = zip(names, counts.ravel().tolist(), strict=True)
    return [{**keys, "name": name, "count": count} for name, count in rows]


def _write_directions(folder: Path, measured: Sequence[ModelMeasurement]) -> None:
    """Write each direction once, a unit vector ``float64[d]``, and the table of them."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for value in measured:
        for name, axis in value.measurement.axes.items():
            row = value.fit_keys | {"metric": value.metric.label, "direction": name}
            key = tuple(row.values())
            if key in rows or np.isnan(axis).any():
                continue
            file = f"directions/{len(rows) + 1}.npy"
            rows[key] = row | {"dimensions": axis.size, "file": file}
            (folder / file).parent.mkdir(exist_ok=True)
            np.save(folder / file, axis, allow_pickle=False)
    if rows:
        measures.DIRECTIONS.write(folder, rows.values())


def write_answers(folder: Path, plan: Plan, executor: Executor) -> None:
    """Write what the models answered, and what their training recorded."""
    popularity: list[dict[str, Any]] = []
    _write_parquet(folder / "lists.parquet", _write_lists(folder, plan, executor, popularity))
    _write_parquet(folder / "popularity.parquet", popularity)
    _write_label_replies(folder / "label_replies.jsonl", plan, executor)
    _write_learning_curves(folder, plan, executor)


def _write_lists(
    folder: Path, plan: Plan, executor: Executor, popularity: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the columns of the lists; add the popularity of items, and write the responses."""
    for context in plan.data_contexts:
        split: Split = executor.value(context.split)
        queries: Queries = executor.value(context.queries)
        n, keys = split.train.n_items, context.keys
        data_keys = {"dataset": keys.dataset, "seed": keys.seed, "fold": keys.fold}
        popularity.append(
            {
                **_repeat_keys(data_keys, n),
                "item_id": _encode_column(np.arange(n), split.train.item_ids.ids),
                "interactions": split.train.item_counts(),
            }
        )
        for model_plan in plan.model_plans:
            answer = model_plan.answer
            if model_plan.data_context is not context or answer is None:
                continue
            if executor.has_succeeded(answer):
                outputs = executor.value(answer)
                if outputs.lists is not None:
                    yield from _build_list_chunks(model_plan, outputs.lists, queries, split)
                if outputs.responses is not None and len(outputs.responses):
                    rows = _list_responses(outputs.responses, make_fit_keys(model_plan))
                    _append_lines(folder / "responses.jsonl", rows)
                executor.forget((answer,))
        executor.forget((context.split, context.queries))


def _build_list_chunks(
    model_plan: ModelPlan, lists: RankedLists, queries: Queries, split: Split
) -> Iterator[dict[str, Any]]:
    size = max(1, _ROW_GROUP // max(lists.k, 1))
    item_ids = np.concatenate([split.train.item_ids.ids, lists.outside])
    for start in range(0, len(lists), size):
        block = lists.take(slice(start, start + size))
        rows, columns = np.nonzero(block.filled)
        yield {
            **_repeat_keys(make_fit_keys(model_plan), rows.size),
            "query_id": _encode_column(rows, queries.ids.ids[start : start + size]),
            "rank": (columns + 1).astype(np.int32),
            "item_id": _encode_column(block.items[block.filled], item_ids),
            "score": block.scores[block.filled],
        }


def _list_responses(responses: Responses, fit_keys: dict[str, Any]) -> Iterator[dict[str, Any]]:
    labels = responses.labels.to_dict("records") or [{}] * len(responses)
    for query_id, text, row in zip(responses.ids, responses.texts, labels, strict=True):
        label = {str(name): _as_json(value) for name, value in row.items()}
        tokens = ("prompt_tokens", "completion_tokens")
        parsed: Any = label.get("parsed")
        with suppress(ValueError, TypeError, RecursionError):  # a label of the user stays a text
            parsed = json.loads(parsed)
        yield {
            **fit_keys,
            "query_id": query_id,
            **({"order": label["order"]} if "order" in label else {}),
            "prompt": label.get("prompt"),
            "reply": text,
            "outcome": label.get("outcome"),
            "parsed": parsed,
            "usage": {name: label[name] for name in tokens if name in label} or None,
            "cached": label.get("cached"),
        }


def _write_label_replies(path: Path, plan: Plan, executor: Executor) -> None:
    """Write the replies that labels follow from, each labelling once; no file without any."""
    stages = {
        stage.digest: (stage, spec.label)
        for context in plan.data_contexts
        for stage, spec in zip(context.labels, plan.experiment.labels, strict=True)
    }
    for stage, detector in stages.values():
        replies = executor.value(stage).replies
        if replies is not None:
            keys = {"dataset": stage.keys.dataset, "seed": stage.keys.seed, "detector": detector}
            _append_lines(path, _list_label_replies(replies, keys))


def _list_label_replies(replies: pd.DataFrame, keys: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the line of each reply that labels follow from; without a probability null."""
    for row in replies.to_dict("records"):
        line: dict[str, Any] = dict(keys)
        for column, value in row.items():
            name, _, kind = str(column).partition(".")
            if kind and name in {"probability", "label"}:
                line.setdefault(name, {})[kind] = _as_json(value)
            else:
                line[name] = _as_json(value)
        yield line


def _append_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _as_json(value: Any) -> Any:
    """Return a cell as a plain value; a missing cell is None."""
    if pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _write_learning_curves(folder: Path, plan: Plan, executor: Executor) -> None:
    """Write the losses of every training that recorded them; no file if there is none."""
    tables = []
    for model_plan in plan.model_plans:
        answer = model_plan.asking
        if answer is None or not executor.has_succeeded(answer):
            continue
        curve = executor.value(answer).learning_curve
        if curve is not None:
            tables.append(curve[list(measures.LEARNING_CURVE)].assign(**make_fit_keys(model_plan)))
        executor.forget((answer,))
    if tables:
        measures.LEARNING_CURVES.write(folder, pd.concat(tables, ignore_index=True))


_ROW_GROUP = 2**20
"""The most rows of a row group of Parquet; larger chunks are divided."""


def _write_parquet(path: Path, chunks: Iterable[Mapping[str, Any]]) -> None:
    """Write chunks of one table, each its columns by name; no file if none has rows."""
    import pyarrow as pa
    from pyarrow import parquet

    writer = None
    try:
        for columns in chunks:
            chunk = pa.table(dict(columns))
            if chunk.num_rows:
                writer = writer or parquet.ParquetWriter(path, chunk.schema)
                writer.write_table(chunk)
    finally:
        if writer is not None:
            writer.close()


def _repeat_keys(keys: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Return columns of ``n`` rows that repeat keys: numbers, and texts as Arrow dictionaries."""
    columns: dict[str, Any] = {}
    for name, value in keys.items():
        if name in {"seed", "fold", "k"}:
            is_cutoff = name == "k"  # which may be missing
            number = math.nan if value is None else value
            columns[name] = np.full(n, number, dtype=np.float64 if is_cutoff else None)
        else:
            codes = np.zeros(n, dtype=np.int32)
            columns[name] = _encode_column(codes, np.array([value], dtype=object))
    return columns


def _encode_column(codes: AnyArray, texts: Ids) -> Any:
    """Return the column ``texts[codes]`` as an Arrow dictionary array."""
    import pyarrow as pa

    indices = pa.array(codes.astype(np.int32, copy=False))
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, type=pa.string()))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with the size in bytes and the SHA-256 digest of each table."""
    suffixes = {".csv", ".jsonl", ".parquet", ".xml"}
    tables = [path for path in sorted(folder.iterdir()) if path.suffix in suffixes]
    tables = [path for path in tables if path.name != _REFERENCE]
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
    write_manifest(folder, manifest.model_copy(update={"failures": failures}))
