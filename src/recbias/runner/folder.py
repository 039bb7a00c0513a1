"""The manifest of a run: its spec, its environment and the record of each stage.

The files of a run in ``results/<name>/<run id>/``, published all at once.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recbias.config.experiment import PluginSpec
from recbias.core.context import Failure, StageRecord, Stored, collect_warnings, warn
from recbias.core.dataset import Dataset, Split
from recbias.core.docstrings import read_formula, read_section, read_summary
from recbias.core.errors import Unwritable
from recbias.core.evidence import RankedLists
from recbias.core.files import compute_digest, digest_file, has_file
from recbias.core.grouping import parse_uncertain_label
from recbias.core.machine import measure_peak_memory_mb, point_link, reset_peak_memory
from recbias.core.measures import GROUPS, METRICS, SIGNIFICANCE
from recbias.core.queries import Queries
from recbias.formats import manifest
from recbias.formats.manifest import Manifest, parse_manifest
from recbias.formats.yaml import dump
from recbias.runner.address import (
    describe_environment,
    digest_own_sources,
    digest_package,
    name_gpus,
)
from recbias.runner.boundary import attempt
from recbias.runner.execute import Executor
from recbias.runner.plan import ModelPlan, Plan, Stage
from recbias.runner.planner import describe_devices
from recbias.runner.results import (
    ModelMeasurement,
    QueryDigests,
    TableWriter,
    build_metrics_table,
    describe_searches,
    encode_column,
    list_searches,
    make_fit_keys,
    repeat_keys,
    write_label_replies,
    write_learning_curves,
    write_response_lines,
    write_searches,
    write_supplements,
)
from recbias.runner.stages import ModelOutputs
from recbias.runner.store import Store, report_unwritable
from recbias.runner.tuning import SearchResult, nan_to_none
from recbias.statistics.groups import DEFINITIONS, UNCERTAIN_MEANS


@dataclass
class RunCost:
    """What a run takes from the moment that this object is made: seconds, and the largest peak."""

    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    peak_memory_mb: float = 0.0
    _start: float = field(default_factory=time.perf_counter)

    def measure(self) -> dict[str, Any]:
        """Return what the run has taken so far, as the manifest has it."""
        self.peak_memory_mb = max(self.peak_memory_mb, measure_peak_memory_mb())
        return {
            "seconds": round(time.perf_counter() - self._start, 3),
            "peak_memory_mb": round(self.peak_memory_mb, 1),
        }


def describe_inputs(plan: Plan, executor: Executor) -> dict[str, Any]:
    """Return what the manifest has of the datasets and queries, as plain values."""
    datasets, queries = _describe_datasets(plan, executor), _describe_queries(plan, executor)
    return {
        "datasets": [row.model_dump() for row in datasets],
        "queries": [row.model_dump() for row in queries],
        "evaluated": [row.model_dump() for row in _digest_contents(plan, executor)],
    }


def build_manifest(
    plan: Plan,
    executor: Executor,
    cost: RunCost,
    warnings: Sequence[str],
    facts: Mapping[str, Any],
) -> Manifest:
    """Return the manifest of a run; ``facts`` are its datasets, queries and checks."""
    records = [*executor.records.values()]
    experiment, searches = plan.experiment, list_searches(plan, executor)
    failed = [
        _describe_failure(record, record.failure)
        for record in records
        if record.failure is not None
    ]
    return Manifest(
        schema_version=1,
        name=experiment.name,
        spec_digest=plan.spec_digest,
        **describe_environment(),
        started=cost.started.isoformat(timespec="seconds"),
        **cost.measure(),
        seeds=list(experiment.seeds),
        limit=plan.options.limit,
        datasets=[manifest.Dataset(**row) for row in facts["datasets"]],
        queries=[manifest.Asked(**row) for row in facts["queries"]],
        evaluated=[manifest.Evaluated(**row) for row in facts["evaluated"]],
        split=_describe_plugin(experiment.split) if experiment.split else None,
        models=[_describe_model(model, plan) for model in experiment.models],
        gpus=name_gpus(device for stage in plan.stages for device in stage.devices),
        searches=[_describe_search(model_plan, search) for model_plan, search in searches],
        metrics=[describe_metric(metric) for metric in experiment.metrics],
        undefined=[
            manifest.Undefined(
                metric=metric.label, k=metric.cutoff, model=model.label, missing=missing
            )
            for metric, model, missing in plan.undefined
        ],
        tests=[_describe_plugin(test) for test in experiment.tests],
        addresses=[
            manifest.Address(
                **make_fit_keys(model_plan),
                metric=metric.label,
                k=metric.cutoff,
                address=stage.digest,
            )
            for model_plan in plan.model_plans
            for metric, stage in zip(model_plan.metrics, model_plan.measures, strict=True)
        ],
        stages=[asdict(record) for record in records],
        checks=[*facts["checks"]],
        offline=plan.options.offline,
        failures=failed,
        warnings=merge_warnings(records, warnings),
    )


def describe_metric(metric: PluginSpec) -> manifest.Metric:
    """Return the definition of a metric."""
    plugin = metric.plugin
    definition: dict[str, Any] = {
        "metric": metric.label,
        "k": metric.parameters.get("k"),
        "name": metric.name,
        "parameters": metric.parameters | metric.split_settings,
        "summary": read_summary(type(plugin)),
        "formula": read_formula(type(plugin)),
        "direction": metric.direction,
        "needs": sorted(metric.needs),
        "values": read_section(type(plugin), "Range"),
        "unit": plugin.unit,
        "source": read_section(type(plugin), "Source"),
        "family": _name_family(type(plugin)),
    }
    gap = metric.grouping.gap if metric.grouping else ""
    label = parse_uncertain_label(metric.grouping.by) if metric.grouping else None
    if label is not None:
        means = UNCERTAIN_MEANS[label.assumption]
        definition["formula"] = f"{means}. x: {definition['formula']}"
    if gap not in DEFINITIONS:
        return manifest.Metric(**definition)
    words = DEFINITIONS[gap]
    definition |= {
        "summary": f"The {words.text} of the groups g of queries. Metric: {definition['summary']}",
        "formula": f"{words.formula}, where {words.subject}\n\n{definition['formula']}",
        "values": words.values or definition["values"],
        "group_direction": plugin.direction,
    }
    return manifest.Metric(**definition)


def _name_family(plugin: type) -> str:
    """Return the family of a metric of recbias, as in ``accuracy``; blank for others."""
    package, _, module = plugin.__module__.partition(".metrics.")
    name = module.partition(".")[0].replace("_", " ") if package == "recbias" else ""
    return {"labels": "labelled items", "templates": "prompts"}.get(name, name)


def _describe_plugin(spec: PluginSpec) -> manifest.Plugin:
    return manifest.Plugin(label=spec.label, name=spec.name, parameters=spec.parameters)


def _describe_model(model: PluginSpec, plan: Plan) -> manifest.Model:
    """Return a model with its device; its tuned settings are listed without a value."""
    placed = next(each.model for each in plan.model_plans if each.model.label == model.label)
    parameters, settings = dict(model.parameters), describe_devices(placed.plugin)
    settings["is_baseline"] = model.is_baseline
    if model.reranked is not None:
        settings["baseline"] = model.reranked.base.label
    if model.tune is not None:
        tuned = [dimension.parameter for dimension in model.tune.space]
        parameters = {name: value for name, value in parameters.items() if name not in tuned}
        settings["searched"] = tuned
    return manifest.Model(label=model.label, name=model.name, parameters=parameters, **settings)


def _describe_search(model_plan: ModelPlan, search: SearchResult) -> manifest.Search:
    states, tune = [trial.state for trial in search.trials], model_plan.model.tune
    prefix = "p of " if tune is not None and tune.objective == "largest_p" else ""
    return manifest.Search(
        **make_fit_keys(model_plan),
        tune=tune and tune.written,
        metric=f"{prefix}{tune.metric.label}" if tune else None,
        k=tune.metric.cutoff if tune else None,
        direction=tune.direction if tune else None,
        settings=dict(search.best.settings),
        value=search.best.value,
        trial=search.best.number,
        failed=states.count("failed"),
        pruned=states.count("pruned"),
        excluded=states.count("excluded"),
        seconds=round(sum(trial.seconds for trial in search.trials), 3),
        trials=[
            {"trial": trial.number, "state": trial.state, "value": nan_to_none(trial.value)}
            for trial in search.trials
        ],
    )


def _describe_datasets(plan: Plan, executor: Executor) -> list[manifest.Dataset]:
    descriptions = []
    for spec in plan.experiment.datasets:
        context = next(
            context for context in plan.data_contexts if context.keys.dataset == spec.label
        )
        dataset: Dataset = executor.value(context.dataset)
        rows = dataset.interactions
        users = rows.n_users if dataset.unit == "user" else 0  # of a log that names none
        counts = {"users": users, "items": rows.n_items, "interactions": len(rows)}
        descriptions.append(
            manifest.Dataset(
                label=spec.label,
                name=spec.source.name,
                parameters=spec.source.parameters,
                filters=[_describe_plugin(data_filter) for data_filter in spec.filters],
                files=dict(plan.files[spec.label]),
                counts={name: int(n) for name, n in (counts | dataset.counts).items()},
                value_labels=getattr(spec.source.plugin, "value_labels", {}),
            )
        )
    return descriptions


def _describe_queries(plan: Plan, executor: Executor) -> list[manifest.Asked]:
    """Return the queries of each data context, without repetitions."""
    descriptions = {}
    for context in plan.data_contexts:
        queries = executor.value(context.queries)
        description = manifest.Asked(
            dataset=context.keys.dataset,
            asked=len(queries),
            unit=queries.unit,
            labels=list_cooccurring_labels(queries.labels.frame),
            parameters=plan.experiment.queries.parameters,
        )
        descriptions[str(description)] = description
    return list(descriptions.values())


def _digest_contents(plan: Plan, executor: Executor) -> Iterator[manifest.Evaluated]:
    """Yield the digests of what the lists of each data context are for, and compared with."""
    for context in plan.data_contexts:
        keys, split = context.keys, executor.value(context.split)
        test = split.test if isinstance(split, Split) else None
        yield manifest.Evaluated(
            dataset=keys.dataset,
            seed=keys.seed or 0,
            fold=keys.fold or 0,
            queries=executor.value(context.queries).ids.digest,
            test="" if test is None else test.digest_pairs(),
        )
        executor.forget((context.split,))


def list_cooccurring_labels(labels: pd.DataFrame) -> dict[str, list[str]]:
    """Return for each label the other labels that occur with it in a query.

    >>> labels = {"race": ["white", None], "age": ["old", None], "place": [None, "bank"]}
    >>> list_cooccurring_labels(pd.DataFrame(labels))
    {'race': ['age'], 'age': ['race'], 'place': []}
    """
    present = labels.notna().to_numpy().astype(np.float32)
    names, counts = [str(name) for name in labels.columns], present.T @ present
    return {
        name: [other for other, n in zip(names, row, strict=True) if n and other != name]
        for name, row in zip(names, counts, strict=True)
    }


def _describe_failure(record: StageRecord, failure: Failure) -> dict[str, Any]:
    keys = {name: getattr(record, name) for name in ("stage", "dataset", "model", "seed", "fold")}
    return {**keys, **asdict(failure)}


def merge_warnings(stages: Sequence[StageRecord], warnings: Sequence[str]) -> list[str]:
    """Return the warnings of the run, then those of its stages, once per fitted model."""
    merged = dict.fromkeys(warnings)
    for stage in stages:
        keys = (stage.dataset, stage.seed, stage.fold, stage.model)
        for warning in stage.warnings:
            merged.setdefault(f"{keys}{warning}", f"{stage.stage}: {warning}")
    return list(dict.fromkeys(text or warning for warning, text in merged.items()))


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
            "options": [plan.options.limit, plan.options.offline],
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


def write_spec(folder: Path, plan: Plan, executor: Executor) -> None:
    """Write ``spec.yaml``, with the settings that were found."""
    searches = list_searches(plan, executor)
    spec = dump(plan.experiment.as_spec()) + "".join(describe_searches(searches))
    (folder / "spec.yaml").write_text(spec, encoding="utf-8")


def write_tables(
    folder: Path,
    plan: Plan,
    executor: Executor,
    *,
    measured: Sequence[ModelMeasurement],
    groups: Sequence[ModelMeasurement],
    significance: pd.DataFrame,
) -> None:
    """Write the tables of values, tests and searches."""
    if searches := list_searches(plan, executor):
        write_searches(folder, searches)
    METRICS.write(folder, build_metrics_table(measured))
    SIGNIFICANCE.write(folder, significance)
    if groups:
        GROUPS.write(folder, (group.row() for group in groups if group.measurement.group))


def write_units(
    folder: Path, plan: Plan, executor: Executor, measured: Sequence[ModelMeasurement]
) -> None:
    """Write what is behind the values: units, bootstrap samples, counts and directions."""
    write_supplements(folder, measured, _digest_queries(plan, executor))


def write_answers(folder: Path, plan: Plan, executor: Executor) -> None:
    """Write what the models answered, and what their training recorded."""
    _write_lists(folder, plan, executor)
    write_label_replies(folder / "label_replies.jsonl", plan, executor)
    write_learning_curves(folder, plan, executor)


def _digest_queries(plan: Plan, executor: Executor) -> QueryDigests:
    """Return the digest of the queries of each dataset, seed and fold."""
    contexts: dict[tuple[str, int | str, int | str], Stage] = {
        (context.keys.dataset, context.keys.seed or 0, context.keys.fold or 0): context.queries
        for context in plan.data_contexts
    }
    return {keys: executor.value(stage).ids.digest for keys, stage in contexts.items()}


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


def describe_failure(step: str, failure: Failure) -> dict[str, Any]:
    """Return a failure after the stages as the manifest lists it."""
    keys = {"stage": step, "dataset": "", "model": "", "seed": None, "fold": None}
    return {**keys, **asdict(failure)}


def _write_lists(folder: Path, plan: Plan, executor: Executor) -> None:
    with (
        TableWriter(folder / "lists.parquet") as lists,
        TableWriter(folder / "popularity.parquet") as popularity,
    ):
        for context in plan.data_contexts:
            split: Split = executor.value(context.split)
            queries: Queries = executor.value(context.queries)
            n, keys = split.train.n_items, context.keys
            data_keys = {"dataset": keys.dataset, "seed": keys.seed, "fold": keys.fold}
            popularity.add(
                {
                    **repeat_keys(data_keys, n),
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
    size = max(1, TableWriter.GROUP // max(lists.k, 1))
    item_ids = np.concatenate([split.train.item_ids.ids, lists.outside])
    for start in range(0, len(lists), size):
        block = lists.take(slice(start, start + size))
        rows, columns = np.nonzero(block.filled)
        yield {
            **repeat_keys(make_fit_keys(model_plan), rows.size),
            "query_id": encode_column(rows + start, queries.ids.ids),
            "rank": (columns + 1).astype(np.int32),
            "item_id": encode_column(block.items[block.filled], item_ids),
            "score": block.scores[block.filled],
        }
