"""Whether files can be read, models trained and metrics measured, asked before any training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from recbias.config.experiment import Experiment, PluginSpec
from recbias.core.errors import Faults, UserError
from recbias.core.outputs.evidence import Evidence
from recbias.core.protocols import ChecksData, ChecksEarly, ChecksFiles, ChecksMachine
from recbias.core.records import StageRecord
from recbias.core.stage_context import collect_warnings
from recbias.runner.boundary import blaming
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import DataContext, Plan
from recbias.runner.stage import Stage
from recbias.runner.stages.grouping import groups_of
from recbias.runner.stages.model import evidence_of
from recbias.runner.stages.shared import training_data


def checked(
    chains: Callable[[Plan, Executor], Iterable[list[StageRecord]]],
) -> Callable[[Plan, Executor], Iterable[list[StageRecord]]]:
    """Return the walk of the models with files and metrics checked before it."""

    def walked(plan: Plan, walk: Executor) -> Iterable[list[StageRecord]]:
        refuse(plan, walk)
        yield from chains(plan, walk)

    return walked


def refuse(plan: Plan, walk: Executor) -> None:
    """Raise every fault that files and the data alone show, each at its place of the spec.

    Raises:
        Faults: A broken file, a column that a model reads and nobody has, a label that no query
            carries, an attribute that no item has.
    """
    faults = list(_of_files(plan, walk))
    for world in plan.worlds:
        faults += _of_models(plan, walk, world)
        faults += _of_metrics(plan, walk, world)
    if faults:
        raise Faults(list({str(each): each for each in faults}.values()))


def _of_files(plan: Plan, walk: Executor) -> Iterator[UserError]:
    """Yield the faults of the files of models, but for those that were asked already."""
    for model in plan.experiment.models:
        own = [(each.world, each.answer) for each in plan.chains if each.model is model]
        labels = [world.keys.dataset for world, answer in own if answer and _new(walk, answer)]
        if labels and isinstance(model.plugin, ChecksFiles):
            try:
                with collect_warnings(), blaming(f"check_files() of {model.label}"):
                    several = len(plan.experiment.datasets) > 1
                    model.plugin.check_files(tuple(dict.fromkeys(labels)) if several else ("",))
            except UserError as error:
                for each in error.faults if isinstance(error, Faults) else (error,):
                    yield _at_file(model, each, plan.experiment)


def _of_models(plan: Plan, walk: Executor, world: DataContext) -> Iterator[UserError]:
    """Yield what the data alone shows to be amiss with models that were not asked already."""
    own = [each for each in plan.chains if each.world is world and each.answer is not None]
    new = [each.model for each in own if _new(walk, each.answer)]  # type: ignore[arg-type]
    asks = any(isinstance(each.plugin, ChecksData) for each in new)
    data = training_data(walk.value(world.dataset), walk.value(world.split)) if asks else None
    for model in new:
        try:
            with collect_warnings(), blaming(f"a check of {model.label}"):
                if isinstance(model.plugin, ChecksMachine):
                    model.plugin.check_machine()
                if isinstance(model.plugin, ChecksData):
                    model.plugin.check_data(data)  # type: ignore[arg-type]
        except UserError as error:
            where = (*model.where, error.where) if error.where else model.where
            yield plan.experiment.fault(where, error.message, remedy=error.remedy)


def _at_file(model: PluginSpec, error: UserError, experiment: Experiment) -> UserError:
    """Return a fault of a file at the setting that names the file, which is said as written."""
    for key, path in vars(model.plugin).items():
        rest = error.where.removeprefix(str(path)) if isinstance(path, Path) else error.where
        if rest != error.where and rest[:1] in {"", ":"}:
            found = f"{model.parameters[key]}{rest}: {error.message}"
            return experiment.fault((*model.where, key), found, remedy=error.remedy)
    return experiment.fault(model.where, str(error), remedy=error.remedy)


def _new(walk: Executor, stage: Stage) -> bool:
    return walk.fresh or not walk.store.has(stage.digest)


def _of_metrics(plan: Plan, walk: Executor, world: DataContext) -> list[UserError]:
    """Return the faults of the metrics that the data alone shows.

    A world in which everything was measured already is not asked again.
    """
    own = [stage for each in plan.chains if each.world is world for stage in each.measures]
    metrics = [each for each in plan.experiment.metrics if _asks(each)]
    if not metrics or not any(_new(walk, each) for each in own):
        return []
    evidence = evidence_of(
        walk.value(world.dataset),
        walk.value(world.split),
        walk.value(world.queries),
        [walk.value(each) for each in world.labels],
    )
    with collect_warnings():
        faults = [fault for each in metrics for fault in _faults(each, evidence, plan.experiment)]
    limit = plan.options.limit
    return faults if limit is None else [_among(each, limit) for each in faults]


def _among(error: UserError, limit: int) -> UserError:
    """Return a fault that says that only some of the queries were looked at."""
    found = f"{error.message}, among the first {limit:,} queries"
    return type(error)(found, where=error.where, remedy=f"raise --limit; {error.remedy}")


def _asks(metric: PluginSpec) -> bool:
    return metric.grouping is not None or isinstance(metric.plugin, ChecksEarly)


def _faults(metric: PluginSpec, evidence: Evidence, experiment: Experiment) -> Iterator[UserError]:
    if metric.grouping is not None:
        try:
            groups_of(evidence.queries, metric.grouping.by)
        except UserError as error:
            yield _placed(metric, "by", error, experiment)
    if isinstance(metric.plugin, ChecksEarly):
        try:
            with blaming(f"check() of {metric.label}"):
                metric.plugin.check(evidence)
        except UserError as error:
            yield _placed(metric, error.where, error, experiment)


def _placed(metric: PluginSpec, key: str, error: UserError, experiment: Experiment) -> UserError:
    known = key in metric.parameters or key == "by"
    where = (*metric.where, key) if known else metric.where
    return experiment.fault(where, error.message, remedy=error.remedy)
