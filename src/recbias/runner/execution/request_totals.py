"""The requests to language models that a run would send, counted before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recbias.config.experiment import PluginSpec
from recbias.core.dataset.split import TrainingData
from recbias.core.models.planned_requests import PlannedRequest, PlansRequests
from recbias.core.models.selected_models import ReordersCandidates
from recbias.core.stage_context import collect_facts, collect_warnings, stage_context
from recbias.runner.boundary import attempt
from recbias.runner.execution.executor import Executor
from recbias.runner.planning.plan import ModelPlan, Plan
from recbias.runner.stages.shared import make_training_data


@dataclass(frozen=True)
class RequestTotals:
    """The requests of one model in all data contexts, each once.

    Args:
        model: The label of the model.
        n_requests: The number of requests.
        n_stored: Those whose reply is stored, or that an earlier model of the spec sends.
        prompt_tokens: An upper estimate of the tokens of the prompts to send.
        completion_tokens: The largest number of tokens of the replies to them.
        money: What these tokens cost by the prices of the spec; None without prices.
        problem: Why the numbers are not known; blank if they are.
    """

    model: str
    n_requests: int = 0
    n_stored: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    money: float | None = None
    problem: str = ""


def count_requests(plan: Plan, executor: Executor) -> list[RequestTotals]:
    """Return the requests of each model that sends requests and whose answers are not stored.

    The dataset, the split and the queries are computed where they are not stored, and a model is
    trained whose candidates another one reorders; without such a model nothing is computed.
    """
    totals: list[RequestTotals] = []
    sent: set[str] = set()
    for model in plan.experiment.models:
        model_plans = [
            model_plan
            for model_plan in plan.model_plans
            if model_plan.model.label == model.label and _is_unanswered(model_plan, executor)
        ]
        if not _sends_requests(model.plugin) or not model_plans:
            continue
        if model.tune is not None:
            totals.append(RequestTotals(model.label, problem="its settings are searched"))
            continue
        requests, failure = attempt(lambda plans=model_plans: _list(plans, plan, executor))  # type: ignore[misc]
        if failure is not None:
            totals.append(RequestTotals(model.label, problem=failure.message))
            continue
        totals.append(_add_up(model, requests, sent))
        sent |= requests.keys()
    return totals


def _sends_requests(plugin: object) -> bool:
    """Return whether a model sends requests; one whose ``llm`` is null is in the process."""
    return isinstance(plugin, PlansRequests) and getattr(plugin, "llm", plugin) is not None


def _is_unanswered(model_plan: ModelPlan, executor: Executor) -> bool:
    return model_plan.asking is not None and not executor.is_stored(model_plan.asking)


def _list(
    model_plans: Sequence[ModelPlan], plan: Plan, executor: Executor
) -> dict[str, PlannedRequest]:
    """Return the requests of one model by address."""
    requests: dict[str, PlannedRequest] = {}
    for model_plan in model_plans:
        context = model_plan.data_context
        stages = (context.dataset, context.split, context.queries)
        dataset, split, queries = (executor.value(stage) for stage in stages)
        data = make_training_data(dataset, split, context.keys.dataset)
        with (
            collect_warnings(),
            collect_facts(),
            stage_context(reply_folder=executor.store.reply_folder),
        ):
            model = _prepare_model(model_plan, executor, data)
            planned = model.plan_requests(queries, plan.experiment.k, data)
        requests |= {request.address: request for request in planned}
        executor.forget(stages[1:])
    return requests


def _prepare_model(model_plan: ModelPlan, executor: Executor, data: TrainingData) -> PlansRequests:
    """Return the model whose requests are counted, fitted if they depend on another model."""
    plugin = model_plan.model.plugin
    if model_plan.answer is None or not isinstance(plugin, ReordersCandidates):
        model: PlansRequests = plugin
        return model
    state = None if model_plan.fit is None else executor.value(model_plan.fit)
    work: Any = model_plan.answer.work
    fitted: PlansRequests = work.fit(data, state)
    return fitted


def _add_up(
    model: PluginSpec, requests: Mapping[str, PlannedRequest], sent: Collection[str]
) -> RequestTotals:
    missing = [
        request
        for request in requests.values()
        if not request.is_stored and request.address not in sent
    ]
    has_prices = all(request.money is not None for request in requests.values())
    return RequestTotals(
        model.label,
        n_requests=len(requests),
        n_stored=len(requests) - len(missing),
        prompt_tokens=sum(request.prompt_tokens for request in missing),
        completion_tokens=sum(request.completion_tokens for request in missing),
        money=sum(request.money or 0.0 for request in missing) if has_prices else None,
    )
