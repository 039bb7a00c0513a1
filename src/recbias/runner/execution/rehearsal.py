"""The execution of a plan's shared stages for checks, without storing or paying for anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from recbias.core.models.planned_requests import AsksAboutItems
from recbias.core.records import StageRecord, Stored
from recbias.runner.execution.executor import Executor
from recbias.runner.stage import Stage
from recbias.runner.stages.labels import LabelItems


@dataclass
class Rehearsal(Executor):
    """An executor that stores nothing and asks no language model: its results stay in memory.

    Labels that a language model would give are 0 for all items.
    """

    def _look_again(self, stage: Stage) -> None:
        """Ask for no result twice: the run looks again before it computes one."""

    def _call(self, stage: Stage, inputs: Sequence[Any], damage: Sequence[str]) -> StageRecord:
        work = stage.work
        if isinstance(work, LabelItems) and isinstance(work.detector, AsksAboutItems):
            stage = replace(stage, work=work.rehearse)
        return super()._call(stage, inputs, damage)

    def _save(self, stage: Stage, value: Any, stored: Stored) -> None:
        self.values[stage.digest] = value
