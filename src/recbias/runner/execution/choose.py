"""The choice of an executor of models, and what a run needs of it."""

from __future__ import annotations

from collections.abc import Sequence

from recbias.core.errors import OutOfRange, StageError, UnknownName
from recbias.runner.execution.executor import Executor, to_error
from recbias.runner.execution.local import Processes
from recbias.runner.execution.ray import RayTasks
from recbias.runner.planning.plan import Plan


def require_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raise UnknownName if the value of an option is not one of its choices."""
    if value not in choices:
        remedy = f"give {option} {' or '.join(choices)}"
        raise UnknownName(f"must be one of {', '.join(choices)}", where=option, remedy=remedy)


def create_executor(name: str, workers: int) -> Processes | RayTasks:
    """Return the executor that trains the models.

    Raises:
        OutOfRange: ``workers`` is below 1.
        UnknownName: There is no such executor.
        MissingExtra: ``ray`` is not installed.
    """
    require_choice("--executor", name, ("local", "ray"))
    if workers < 1:
        raise OutOfRange("must be at least 1", where="--workers", remedy="give --workers 1")
    return RayTasks(workers) if name == "ray" else Processes(workers)


def require_answers(run_plan: Plan, execution: Executor) -> None:
    """Raise the first failure if no model has results, since there is nothing to report."""
    answers = [
        execution.records.get(chain.answer.digest)
        for chain in run_plan.model_plans
        if chain.answer
    ]
    if any(answer is not None and answer.failure is None for answer in answers):
        return
    failures = [record for record in execution.records.values() if record.failure]
    raise to_error(failures[0]) if failures else StageError("no model has results")
