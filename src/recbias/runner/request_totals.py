"""The requests to language models that a run would send, counted before it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from recbias.config.experiment import PluginSpec
from recbias.core.context import collect_facts, collect_warnings, stage_context
from recbias.core.dataset import TrainingData
from recbias.core.plugins import (
    AsksAboutItems,
    PlannedRequest,
    PlansRequests,
    ReordersCandidates,
    sends_requests,
)
from recbias.runner.boundary import attempt
from recbias.runner.execute import Executor
from recbias.runner.plan import DataContext, ModelPlan, Plan
from recbias.runner.stages import make_training_data


@dataclass(frozen=True)
class RequestTotals:
    """The requests of one model or detector in all data contexts, each once.

    Args:
        model: The label of the model or detector.
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
    """Return the requests of each detector and model that sends some and has stored no result.

    The dataset, the split and the queries are computed where they are not stored, and a model is
    trained whose candidates another one reorders; without a language model nothing is computed.
    """
    totals: list[RequestTotals] = []
    sent: set[str] = set()
    for label, list_requests in _iterate_senders(plan, executor):
        if list_requests is None:
            totals.append(RequestTotals(label, problem="its settings are searched"))
            continue
        requests, failure = attempt(list_requests)
        if failure is not None:
            totals.append(RequestTotals(label, problem=failure.message))
            continue
        totals.append(_add_up(label, requests, sent))
        sent |= requests.keys()
    return totals


def _iterate_senders(
    plan: Plan, executor: Executor
) -> Iterator[tuple[str, Callable[[], dict[str, PlannedRequest]] | None]]:
    """Yield the label of each detector and model that sends requests, and what lists them."""
    for at, detector in enumerate(plan.experiment.labels):
        contexts = [
            context for context in plan.data_contexts if not executor.is_stored(context.labels[at])
        ]
        if isinstance(detector.plugin, AsksAboutItems) and contexts:
            yield detector.label, partial(_list_label_requests, contexts, detector, executor)
    for model in plan.experiment.models:
        model_plans = [
            model_plan
            for model_plan in plan.model_plans
            if model_plan.model.label == model.label
            if model_plan.asking and not executor.is_stored(model_plan.asking)
        ]
        asked = model.reranked.base.plugin if model.reranked else model.plugin
        if sends_requests(asked) and model_plans:
            lists = partial(_list, model_plans, plan, executor) if model.tune is None else None
            yield model.label, lists


def _list_label_requests(
    contexts: Iterable[DataContext], detector: PluginSpec, executor: Executor
) -> dict[str, PlannedRequest]:
    """Return the requests of one detector by address."""
    requests: dict[str, PlannedRequest] = {}
    for stage in {context.dataset.digest: context.dataset for context in contexts}.values():
        dataset = executor.value(stage)
        with (
            collect_warnings(),
            collect_facts(),
            stage_context(reply_folder=executor.store.reply_folder),
        ):
            planned = detector.plugin.plan_label_requests(dataset.items)
        requests |= {request.address: request for request in planned}
    return requests


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
            planned = model.plan_requests(queries, _find_length(model_plan, plan), data)
        requests |= {request.address: request for request in planned}
        executor.forget(stages[1:])
    return requests


def _prepare_model(model_plan: ModelPlan, executor: Executor, data: TrainingData) -> PlansRequests:
    """Return the model whose requests are counted, fitted if they depend on another model."""
    reranked = model_plan.model.reranked
    plugin = reranked.base.plugin if reranked else model_plan.model.plugin
    if model_plan.answer is None or not isinstance(plugin, ReordersCandidates):
        model: PlansRequests = plugin
        return model
    state = None if model_plan.fit is None else executor.value(model_plan.fit)
    work: Any = [model_plan.answer, *model_plan.candidates][-1].work
    fitted: PlansRequests = work.fit(data, state)
    return fitted


def _find_length(model_plan: ModelPlan, plan: Plan) -> int:
    """Return the length of the lists that a model is asked for: of candidates if re-ranked."""
    reranked = model_plan.model.reranked
    return int(reranked.reranker.plugin.candidates) if reranked else plan.experiment.k


def _add_up(
    label: str, requests: Mapping[str, PlannedRequest], sent: Collection[str]
) -> RequestTotals:
    missing = [
        request
        for request in requests.values()
        if not request.is_stored and request.address not in sent
    ]
    has_prices = all(request.money is not None for request in requests.values())
    return RequestTotals(
        label,
        n_requests=len(requests),
        n_stored=len(requests) - len(missing),
        prompt_tokens=sum(request.prompt_tokens for request in missing),
        completion_tokens=sum(request.completion_tokens for request in missing),
        money=sum(request.money or 0.0 for request in missing) if has_prices else None,
    )
