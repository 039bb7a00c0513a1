"""Whether the metrics can be measured at all, asked of the data before any model is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from recbias.config.experiment import Chosen, Experiment
from recbias.core.errors import Faults, UserError
from recbias.core.evidence import Evidence
from recbias.core.notes import noting
from recbias.core.protocols import ChecksEarly
from recbias.core.records import StageRecord
from recbias.runner.execute import Walk
from recbias.runner.plan import Plan, World
from recbias.runner.work import evidence_of, groups_of


def checked(
    chains: Callable[[Plan, Walk], Iterable[list[StageRecord]]],
) -> Callable[[Plan, Walk], Iterable[list[StageRecord]]]:
    """Return the walk of the models with the metrics of every world asked before it."""

    def walked(plan: Plan, walk: Walk) -> Iterable[list[StageRecord]]:
        for world in plan.worlds:
            check_metrics(plan, walk, world)
        yield from chains(plan, walk)

    return walked


def check_metrics(plan: Plan, walk: Walk, world: World) -> None:
    """Raise every fault of the metrics that the data alone shows, each at its place of the spec.

    A world in which everything was measured already is not asked again.

    Raises:
        Faults: A label that no query carries, an attribute that no item has, and so on.
    """
    own = [stage for each in plan.chains if each.world is world for stage in each.measures]
    if not walk.fresh and all(walk.store.has(each.digest) for each in own):
        return
    experiment = plan.experiment
    metrics = [each for each in experiment.metrics if _asks(each)]
    if not metrics:
        return
    evidence = evidence_of(
        walk.value(world.dataset),
        walk.value(world.split),
        walk.value(world.queries),
        [walk.value(each) for each in world.labels],
    )
    with noting():
        faults = [fault for each in metrics for fault in _faults(each, evidence, experiment)]
    if faults:
        raise Faults(list({str(each): each for each in faults}.values()))


def _asks(metric: Chosen) -> bool:
    return metric.grouping is not None or isinstance(metric.plugin, ChecksEarly)


def _faults(metric: Chosen, evidence: Evidence, experiment: Experiment) -> Iterator[UserError]:
    if metric.grouping is not None:
        try:
            groups_of(evidence.queries, metric.grouping.by)
        except UserError as error:
            yield _placed(metric, "by", error, experiment)
    if isinstance(metric.plugin, ChecksEarly):
        try:
            metric.plugin.check(evidence)
        except UserError as error:
            yield _placed(metric, error.where, error, experiment)


def _placed(metric: Chosen, key: str, error: UserError, experiment: Experiment) -> UserError:
    known = key in metric.parameters or key == "by"
    where = (*metric.where, key) if known else metric.where
    return experiment.fault(where, error.found, remedy=error.remedy)
