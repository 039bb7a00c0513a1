"""A gap when what the groups differ in is changed: the model is trained again.

Each subset of the interventions is one training, a stored stage; only training rows change, so
that all trainings are measured on the same users and test items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pandas as pd

from recbias.api import create_executor, read_experiment
from recbias.config.experiment import PluginSpec
from recbias.config.specs import Grouping
from recbias.core.dataset import AnyArray, Dataset, FloatArray, Interactions, Queries, Split
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    MissingEvidence,
    StageError,
    UnknownName,
)
from recbias.core.evidence import RankedLists, mark_contained
from recbias.core.files import make_generator
from recbias.core.text import suggest
from recbias.progress import open_observer
from recbias.runner.execute import Executor, execute_plans
from recbias.runner.plan import DataContext, ModelPlan, Plan, RunOptions, Stage
from recbias.runner.planner import StagePlanner, choose_devices, make_plan
from recbias.runner.stages import ModelOutputs, select_rows
from recbias.runner.store import Fingerprints, Store
from recbias.runner.verdicts import code_pair
from recbias.statistics.decomposition import compute_shapley

Intervention: TypeAlias = Literal["size", "length", "popularity", "worst", "seed"]
"""What is made equal: the number of users of both groups in training, the distribution of the
length of their histories, that of the popularity of their items; or the model's search optimizes
the value of its worst group, or only the seed of training is another."""

INTERVENTIONS: tuple[Intervention, ...] = get_args(Intervention)

_N_MORE = 500
"""How much longer the lists are from which items of the original histories are removed."""

_N_BINS = 10
"""The number of classes of the popularity of items."""


@dataclass(frozen=True)
class _EqualiseTraining:
    """Remove training rows until two groups of users agree in some respects.

    Args:
        by: The label of the groups, of which ``groups`` are two.
        interventions: In which respects.
        seed: Draws the rows and users.
    """

    by: str
    groups: tuple[str, str]
    interventions: tuple[Intervention, ...]
    seed: int

    def __call__(self, dataset: Dataset, split: Split, queries: Queries) -> Split:
        """Return the split with fewer training rows."""
        train = split.train
        of_query, _ = code_pair(queries, self.by, self.groups)
        codes = _code_users(queries, of_query, train.n_users)
        if "size" in self.interventions:
            left_out = choose_left_out(codes, self.seed)
            train = train.take(~left_out[train.users])
        for name, remove in (("popularity", match_popularity), ("length", match_lengths)):
            if name in self.interventions:
                rng = make_generator(self.seed, "intervention", name)
                train = train.take(remove(train, codes, rng))
        return replace(split, train=train)


def read_interventions(names: Sequence[str]) -> tuple[Intervention, ...]:
    """Return interventions by their names, each once.

    Raises:
        UnknownName: There is no such intervention.
    """
    for name in names:
        if name not in INTERVENTIONS:
            remedy = suggest(name, INTERVENTIONS)
            raise UnknownName(f"no intervention is called {name!r}", remedy=remedy)
    return tuple(each for each in INTERVENTIONS if each in names)


def _code_users(queries: Queries, codes: AnyArray, n_users: int) -> AnyArray:
    """Return the code of each user, from those of the queries; -1 for users without a query."""
    of_user = np.full(n_users, -1, dtype=codes.dtype)
    is_user = queries.users >= 0
    of_user[queries.users[is_user]] = codes[is_user]
    return of_user


def choose_left_out(codes: AnyArray, seed: int) -> AnyArray:
    """Return which users of the larger group are left out, so that both have the same number.

    They are not measured either, in any training.
    """
    left_out = np.zeros(len(codes), dtype=bool)
    members = [np.flatnonzero(codes == code) for code in (0, 1)]
    n = min(map(len, members))
    for own in members:
        kept = make_generator(seed, "intervention", "size").permutation(own)[:n]
        left_out[np.setdiff1d(own, kept)] = True
    return left_out


def match_lengths(train: Interactions, codes: AnyArray, rng: np.random.Generator) -> AnyArray:
    """Return which rows stay, so that both groups have equal distributions of history length.

    A user at quantile q of the own group keeps as many rows, drawn at random, as the smaller of
    the two groups' quantiles at q.
    """
    counts = train.user_counts()
    limit = counts.astype(np.float64)
    members = [np.flatnonzero((codes == code) & (counts > 0)) for code in (0, 1)]
    for own, other in (members, members[::-1]):
        order = own[np.argsort(counts[own], kind="stable")]
        at = (np.arange(len(order)) + 0.5) / max(len(order), 1)
        reached = np.quantile(counts[other], at, method="inverted_cdf") if len(other) else at
        limit[order] = np.minimum(counts[order], reached)
    return _rank_in_user(train, rng) < limit[train.users]


def _rank_in_user(train: Interactions, rng: np.random.Generator) -> AnyArray:
    """Return the place of each row among those of its user, in random order."""
    order = np.lexsort((rng.random(len(train)), train.users))
    starts = np.concatenate([[0], np.cumsum(np.bincount(train.users, minlength=train.n_users))])
    ranks = np.empty(len(train), dtype=np.int64)
    ranks[order] = np.arange(len(train)) - starts[train.users[order]]
    return ranks


def match_popularity(train: Interactions, codes: AnyArray, rng: np.random.Generator) -> AnyArray:
    """Return which rows stay, so that both groups have equal shares of classes of popularity.

    A row of class b stays with probability ``min(s_a(b), s_b(b)) / s_own(b)``.
    """
    counts = train.item_counts().astype(np.float64)
    order = np.argsort(counts, kind="stable")
    cumulated = np.cumsum(counts[order]) / max(counts.sum(), 1.0)
    classes = np.empty(len(counts), dtype=np.int64)
    classes[order] = np.minimum((cumulated * _N_BINS).astype(np.int64), _N_BINS - 1)
    of_row, group = classes[train.items], codes[train.users]
    shares = np.array(
        [np.bincount(of_row[group == code], minlength=_N_BINS) for code in (0, 1)],
        dtype=np.float64,
    )
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    stays = np.divide(shares.min(axis=0), shares, out=np.zeros_like(shares), where=shares > 0)
    probability = np.where(group >= 0, stays[group, of_row], 1.0)
    kept: AnyArray = rng.random(len(train)) < probability
    return kept


class Gap(NamedTuple):
    """The gap of a metric with a value for each user: the mean of the first group less the other.

    ``metric`` is its label in the run, and ``k`` its cutoff; ``model`` is trained again.
    """

    metric: str
    k: int | None
    by: str
    groups: tuple[str, str]
    model: str


def intervene(
    spec: Path,
    gap: Gap,
    interventions: Sequence[Intervention],
    options: RunOptions,
    *,
    resamples: int = 1_000,
) -> pd.DataFrame:
    """Return what each intervention does to a gap: its Shapley value over all orders.

    Args:
        spec: The spec of a run; its first dataset, seed and fold are used.
        gap: The gap.
        interventions: Which ones.
        options: The folders of results and data, and the limit of queries of the run.
        resamples: The number of bootstrap samples of the users, which all trainings share.

    Returns:
        A row for each intervention with ``effect``, ``ci_low`` and ``ci_high``, after one for the
        gap ``before`` and before one for the gap ``after`` all of them.

    Raises:
        Contradiction: The users of the spec are not queries.
        MissingEvidence: The model gives no lists, or the spec has no such metric.
        StageError: A training failed.
    """
    store = Store(options.results_folder / "store")
    first, plans = _plan_trainings(spec, gap, interventions, options, store)
    with open_observer() as observer:
        chains = create_executor(options)
        executor, problems = execute_plans([*plans.values()], store, observer, chains)
    if problems:
        raise StageError(next(iter(problems.values())))
    queries: Queries = executor.value(first.data_contexts[0].queries)
    split: Split = executor.value(first.data_contexts[0].split)
    of_query, _ = code_pair(queries, gap.by, gap.groups)
    if "size" in interventions:
        codes = _code_users(queries, of_query, split.train.n_users)
        left_out = choose_left_out(codes, first.experiment.seeds[0])
        of_query[(queries.users >= 0) & left_out[queries.users]] = -1
    values = {chosen: _read_values(executor, plan, queries) for chosen, plan in plans.items()}
    return _tabulate(values, of_query, interventions, resamples)


def _plan_trainings(
    spec: Path,
    gap: Gap,
    interventions: Sequence[Intervention],
    options: RunOptions,
    store: Store,
) -> tuple[Plan, dict[tuple[int, ...], Plan]]:
    """Return the plan of the model as it is, and one for each subset of the interventions."""
    experiment = read_experiment(spec)
    kept = tuple(each for each in experiment.models if each.label == gap.model)
    metrics = tuple(
        each.ungrouped
        for each in experiment.metrics
        if gap.metric in {each.label, each.ungrouped.label} and each.cutoff == gap.k
    )[:1]
    if not metrics:
        message = f"the spec has no metric {gap.metric} without groups"
        raise MissingEvidence(message, where="--retrain")
    experiment = replace(
        experiment,
        models=kept,
        metrics=metrics,
        tests=(),
        checks=(),
        datasets=experiment.datasets[:1],
        seeds=experiment.seeds[:1],
    )
    fingerprints = Fingerprints(store)
    first = make_plan(experiment, options, fingerprints)
    context = first.data_contexts[0]
    if context.sampled is not None:
        raise Contradiction("folds are samples of queries, and not of users", where="--retrain")
    planner = StagePlanner(choose_devices(experiment), fingerprints)
    seed, plans = experiment.seeds[0], {}
    for chosen in _list_subsets(len(interventions)):
        names = tuple(interventions[at] for at in chosen)
        split, model = context.split, kept[0]
        if "worst" in names:
            model = _tune_for_worst(model, metrics[0], gap.by)
        if set(names) - {"worst"}:
            keys = replace(split.keys, seed=seed + ("seed" in names))
            equalised = tuple(name for name in names if name not in {"seed", "worst"})
            work = _EqualiseTraining(gap.by, gap.groups, equalised, seed)
            title = f"equalise {', '.join(names)}"
            read = (context.dataset, split, context.queries)
            stage = Stage("split", title, work, read, keys)
            split = planner.place(stage, training=keys.seed)
        own = replace(context, split=split)
        model_plan = _plan_answer(planner, context, own, model, metrics[0])
        plans[chosen] = replace(first, data_contexts=(own,), model_plans=(model_plan,))
    return first, plans


def _tune_for_worst(model: PluginSpec, metric: PluginSpec, by: str) -> PluginSpec:
    """Return the model with its search, which optimizes the value of the worst group."""
    if model.tune is None:
        message = f"{model.label} has no search that could optimize its worst group"
        remedy = "add tune: {metric: nDCG, trials: 20, space: {...}} to the model, and run again"
        raise Contradiction(message, where="--retrain worst", remedy=remedy)
    label = f"{metric.label} of the worst group"
    worst = replace(metric, grouping=Grouping(by, "worst"), label=label)
    return replace(model, tune=replace(model.tune, metric=worst))


@dataclass(frozen=True)
class _DropRemoved:
    """Take the first ``k`` items of longer lists that are not in the original training rows.

    A model recommends the items that an intervention removed from a history, since it does not
    know them; with the original rows it could not.
    """

    k: int

    def __call__(self, outputs: ModelOutputs, queries: Queries, split: Split) -> ModelOutputs:
        """Return the outputs with the shorter lists."""
        lists = outputs.lists
        if lists is None:
            raise BrokenContract("the model has no lists")
        seen = mark_contained(select_rows(split.train.binary, queries), lists)
        order = np.argsort(seen | ~lists.filled, axis=1, kind="stable")[:, : self.k]
        kept = ~np.take_along_axis(seen, order, axis=1)
        items = np.where(kept, np.take_along_axis(lists.items, order, axis=1), -1)
        scores = np.where(kept, np.take_along_axis(lists.scores, order, axis=1), np.nan)
        return replace(outputs, lists=RankedLists(items.astype(np.int32), scores, lists.outside))


def _plan_answer(
    planner: StagePlanner,
    context: DataContext,
    own: DataContext,
    model: PluginSpec,
    metric: PluginSpec,
) -> ModelPlan:
    """Return the plan of a training, with lists that are measured as those before it."""
    k = planner.experiment.k
    planned = planner.plan_outputs(own, model, k + _N_MORE)
    if planned.answer is None:
        raise MissingEvidence(f"{model.label} gives no lists", where="--retrain")
    keys, take = planned.answer.keys, _DropRemoved(k)
    read = (planned.answer, context.queries, context.split)
    answer = planner.place(Stage("answer", f"take {k} of {model.label}", take, read, keys))
    measure = planner.plan_metric(context, answer, metric, keys)
    return replace(
        planned,
        answer=answer,
        shared_answer=planned.answer,
        metrics=(metric,),
        measures=(measure,),
    )


def _list_subsets(n: int) -> list[tuple[int, ...]]:
    return [chosen for size in range(n + 1) for chosen in combinations(range(n), size)]


def _read_values(executor: Executor, plan: Plan, queries: Queries) -> FloatArray:
    """Return the value of each query after a training."""
    (own,) = plan.model_plans
    rows = [row for row in executor.value(own.measures[0]) if row.units is not None]
    whole = next(row for row in rows if not row.group and not row.target)
    values = np.full(len(queries), np.nan)
    values[queries.ids.find(whole.units.ids)] = whole.units.values
    return values


def _tabulate(
    values: dict[tuple[int, ...], FloatArray],
    codes: AnyArray,
    interventions: Sequence[Intervention],
    resamples: int,
) -> pd.DataFrame:
    defined = ~np.isnan(np.stack([*values.values()])).any(axis=0)
    members = [np.flatnonzero(defined & (codes == code)) for code in (1, 0)]
    rng = np.random.default_rng(0)
    drawn = [own[rng.integers(len(own), size=(resamples, len(own)))] for own in members]
    gaps = {
        chosen: np.append(
            own[members[0]].mean() - own[members[1]].mean(),
            own[drawn[0]].mean(axis=1) - own[drawn[1]].mean(axis=1),
        )
        for chosen, own in values.items()
    }
    n = len(interventions)
    effects = compute_shapley(n, gaps.__getitem__)
    columns: dict[str, FloatArray] = {
        "before": gaps[()],
        **dict(zip(interventions, effects, strict=True)),
        "after": gaps[tuple(range(n))],
    }
    rows: list[dict[str, Any]] = []
    for name, column in columns.items():
        low, high = np.quantile(column[1:], [0.025, 0.975])
        rows.append({"change": name, "effect": column[0], "ci_low": low, "ci_high": high})
    return pd.DataFrame(rows)
