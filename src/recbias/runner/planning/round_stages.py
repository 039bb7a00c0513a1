"""The rounds of a feedback loop: each has the stages of a model on the data that it caused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from recbias.config.experiment import DatasetSpec, Experiment, PluginSpec
from recbias.config.specs import FeedbackSpec
from recbias.core.dataset.odds import KnowsOdds
from recbias.core.errors import Contradiction, MissingEvidence, OutOfRange, UserError
from recbias.core.models.planned_requests import sends_requests
from recbias.runner.planning.plan import DataContext, ModelPlan, find_chooser
from recbias.runner.stage import Stage
from recbias.runner.stages.feedback import AcceptItems

PlanModel = Callable[[DataContext, PluginSpec], ModelPlan]
"""Returns the plan of a model in a data context, with its metrics."""


def plan_rounds(
    first: ModelPlan,
    feedback: FeedbackSpec,
    plan_model: PlanModel,
    place: Callable[..., Stage],
) -> Iterator[ModelPlan]:
    """Yield the plans of a model in the rounds after the first.

    The data context of a round is that of the first with another split: that of the round before
    and the items accepted in it. Every model has a history of its own.
    """
    previous = first
    for number in range(2, feedback.rounds + 1):
        split = _plan_acceptance(previous, feedback, number, first.model.label, place)
        context = replace(first.data_context, split=split)
        previous = plan_model(context, _name_round(first.model, number))
        yield previous


def _plan_acceptance(
    previous: ModelPlan,
    feedback: FeedbackSpec,
    number: int,
    label: str,
    place: Callable[..., Stage],
) -> Stage:
    """Return the stage that adds what users accept to the training data of a round."""
    context = previous.data_context
    keys = context.training_keys
    seed, fold = keys.seed or 0, keys.fold or 1
    accept = AcceptItems(get_world(context), feedback, seed, fold, number)
    title = f"accept items of {label} for round {number}"
    shared = (context.dataset, context.split, context.asked)
    inputs = (*shared, *filter(None, (previous.asking,)))
    identity: Mapping[str, object] = {
        "choice": {**vars(feedback), "rounds": None},  # more rounds reuse the first ones
        "seed": seed,
        "fold": fold,
        "round": number,
    }
    return place(Stage("split", title, "", accept, inputs, keys), identity=identity)


def get_world(context: DataContext) -> object:
    """Return the dataset plug-in of a data context."""
    return getattr(context.dataset.work, "source", None)


def _name_round(model: PluginSpec, number: int) -> PluginSpec:
    """Return a model whose label, which titles of stages show, has the number of the round."""
    reranked = model.reranked
    if reranked is not None:
        reranked = replace(reranked, base=_name_round(reranked.base, number))
    return replace(model, label=f"{model.label}, round {number}", reranked=reranked)


def find_feedback_faults(experiment: Experiment) -> Iterator[UserError]:
    """Yield what a feedback loop cannot be run with."""
    feedback = experiment.feedback
    if feedback is None:
        return
    for dataset in experiment.datasets:
        yield from _check_dataset(experiment, dataset, feedback)
    for model in experiment.models:
        yield from _check_model(experiment, model)
    for metric in experiment.metrics:
        if label := find_chooser(metric):
            message = f"{metric.label} reads {label}, which has another history in each round"
            remedy = "remove feedback, or the metric"
            yield experiment.fault(metric.where, message, remedy=remedy, kind=Contradiction)


def _check_dataset(
    experiment: Experiment, dataset: DatasetSpec, feedback: FeedbackSpec
) -> Iterator[UserError]:
    source, key_path = dataset.source, ("feedback",)
    if not isinstance(source.plugin, KnowsOdds):
        message = (
            f"how users of {dataset.label} choose is not known, so what they would accept is not"
        )
        remedy = "choose the dataset demo, or remove feedback"
        yield experiment.fault(key_path, message, remedy=remedy, kind=MissingEvidence)
        return
    n_items = getattr(source.plugin, "n_items", None)
    accepted = (feedback.rounds - 1) * min(feedback.picks, experiment.k)
    if n_items is not None and n_items - n_items // 2 < accepted + experiment.k:
        message = (
            f"a user may have {n_items // 2:,} of the {n_items:,} items and accept {accepted:,} "
            f"in {feedback.rounds} rounds, which leaves less than a list of {experiment.k}"
        )
        remedy = "use more items, fewer rounds or picks, or shorter lists"
        yield experiment.fault((*key_path, "rounds"), message, remedy=remedy, kind=OutOfRange)


def _check_model(experiment: Experiment, model: PluginSpec) -> Iterator[UserError]:
    requested = model.reranked.base if model.reranked else model
    message, remedy = "", "remove feedback, or the model"
    if "lists" not in model.plugin.provides:
        message = f"{model.label} has no lists from which users could accept items"
    elif model.tune is not None or requested.tune is not None:
        message = f"{model.label} would be searched again in every round"
        remedy = "search it in a spec without feedback, and give the best settings here"
    elif sends_requests(requested.plugin):
        message = f"{model.label} sends requests whose number in later rounds is not known"
    if message:
        yield experiment.fault(model.where, message, remedy=remedy, kind=Contradiction)
