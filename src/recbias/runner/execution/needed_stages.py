"""The stages of a model that a run has to ensure: not those whose results nothing reads."""

from __future__ import annotations

from typing import Protocol

from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.stage import Stage
from recbias.runner.storage.store import Store

SELDOM_NEEDED = frozenset({"fit", "trial", "baseline"})
"""Kinds of stage that are not needed if the answers and searches that read them are stored."""


class KnowsStored(Protocol):
    """Knows which results may be reused."""

    def is_stored(self, stage: Stage) -> bool:
        """Return whether the result of a stage is stored and may be reused."""


def select_needed_stages(executor: KnowsStored, model_plan: ModelPlan) -> tuple[Stage, ...]:
    """Return the stages of a model: without training if its answer is stored.

    Nor are the trials of a search needed if its result is stored. Those of later rounds are last.
    """
    search = model_plan.search
    results = {"fit": model_plan.asking, "trial": search, "baseline": search}
    unneeded = {kind for kind, stage in results.items() if stage and executor.is_stored(stage)}
    if "fit" in unneeded:
        unneeded |= {stage.digest for stage in model_plan.candidates}
    elif model_plan.candidates and all(map(executor.is_stored, model_plan.candidates)):
        unneeded.add("fit")
    needed = [
        stage for stage in model_plan.own_stages if unneeded.isdisjoint({stage.kind, stage.digest})
    ]
    for later in model_plan.rounds:
        needed += [later.data_context.split, *select_needed_stages(executor, later)]
    return tuple(needed)


def look_up_results(plan: Plan, store: Store) -> None:
    """Ask a store at a URL for the results of a plan at the same time and not one by one."""
    store.look_up(stage.digest for stage in plan.stages if stage.kind not in SELDOM_NEEDED)
