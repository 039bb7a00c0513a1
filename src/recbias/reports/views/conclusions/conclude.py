"""The conclusions of a run: one for each question and value, the most important ones first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from recbias.core.measurements.columns import ALL
from recbias.reports.views.comparisons import Row
from recbias.reports.views.conclusions.effects import compute_effect, find_detectable, rank_effect
from recbias.reports.views.conclusions.failed_checks import describe_failed_checks
from recbias.reports.views.conclusions.questions import Question, collect_questions
from recbias.reports.views.conclusions.reranking import describe_reranking
from recbias.reports.views.conclusions.round_changes import describe_rounds
from recbias.reports.views.conclusions.sentences import write_answer
from recbias.reports.views.conclusions.values import describe_values
from recbias.reports.views.run_tables import RunTables

FIRST = 8
"""The number of conclusions that a terminal shows."""

_METHOD = ("test", "correction", "family", "family_size", "alpha")

RESERVED = 2
"""How many of the first conclusions are kept for comparisons within models, if there are any."""

MAX_CHECKS, MAX_RERANKING, MAX_ROUNDS = 3, 3, 3
"""How many of the first conclusions are failed checks, re-ranking, and rounds, at most."""


_DESCRIBED: Sequence[tuple[Literal["reranking", "rounds"], Callable[..., Iterator[Any]]]] = (
    ("reranking", describe_reranking),
    ("rounds", describe_rounds),
)
"""What is said about the changes of values, by kind."""


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """The answer of a run to one question, as two lines of text and as numbers.

    The fields from ``a`` on are those of the comparison with the largest significant effect; they
    are blank or NaN if no comparison is significant, and for values without a test.

    Args:
        sentence: The answer.
        detail: How it was found: test, correction, p-value and n; it may be blank.
        kind: ``check``: a failed check; ``reranking``: what re-ranking removes and costs;
            ``rounds``: a value over rounds of feedback; ``groups``: what is compared within a
            model; ``models``; or ``value`` without a test.
        effect: The size of the effect in standard deviations, by which conclusions are ordered.
        n_tests: The number of comparisons, of which ``n_significant`` are significant.
        detectable: The difference that each test which found none would have detected in 80 of
            100 such runs; NaN if there is no such test.
        worst: The worst-off groups of queries in the metric's direction.
    """

    kind: Literal["check", "reranking", "rounds", "groups", "models", "value"]
    metric: str
    dataset: str
    sentence: str
    detail: str = ""
    between: str = ""
    effect: float = math.nan
    n_tests: int = 0
    n_significant: int = 0
    detectable: float = math.nan
    model: str = ""
    a: str = ""
    b: str = ""
    part: str = ""
    mean_a: float = math.nan
    mean_b: float = math.nan
    difference: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p_adjusted: float = math.nan
    test: str = ""
    correction: str = ""
    family: str = ""
    family_size: float = math.nan
    alpha: float = math.nan
    worst: tuple[str, ...] = ()


@lru_cache(maxsize=2)
def collect_conclusions(run: RunTables) -> tuple[Conclusion, ...]:
    """Return the conclusions: checks, re-ranking, rounds, then significant ones, groups first."""
    questions = collect_questions(run)
    answers = [_conclude(question) for question in questions]
    answers.sort(
        key=lambda item: (not item.n_significant, item.kind != "groups", -rank_effect(item.effect))
    )
    values = [
        Conclusion(kind="value", metric=title, dataset=dataset, **answer._asdict())
        for title, dataset, answer in describe_values(run, questions)
    ]
    checks = [
        Conclusion(kind="check", sentence=sentence, metric=metric, dataset=dataset, model=model)
        for sentence, metric, dataset, model in describe_failed_checks(run)
    ]
    changes = [
        Conclusion(kind=kind, metric=title, dataset=dataset, sentence=sentence, detail=detail)
        for kind, described in _DESCRIBED
        for title, dataset, sentence, detail in described(run)
    ]
    return (*checks, *changes, *answers, *values)


def _conclude(question: Question) -> Conclusion:
    undecided = _list_undecided(question)
    test = question.comparisons[0].rows[0]
    return Conclusion(
        kind="models" if question.compares_models else "groups",
        metric=question.metric.title,
        dataset=question.dataset or _hide_mean(test["dataset"]),
        **write_answer(question)._asdict(),
        between=question.between,
        n_tests=len(question.rows),
        n_significant=len(question.significant),
        detectable=find_detectable(undecided),
        effect=next(map(compute_effect, question.significant or question.rows), math.nan),
        **{name: test[name] for name in _METHOD},
        **(_list_facts(question, question.select_leads()[0]) if question.significant else {}),
    )


def _hide_mean(dataset: str) -> str:
    return "" if dataset == ALL else dataset


def _list_undecided(question: Question) -> Sequence[Row]:
    """Return the comparisons that found nothing, of which a conclusion states the power."""
    if question.compares_models:
        return [row for row in question.rows if row not in question.significant]
    return question.select_undecided()


def _list_facts(question: Question, row: Row) -> dict[str, Any]:
    names = ("model", "a", "b", "mean_a", "mean_b", "difference", "ci_low", "ci_high")
    facts = {name: row[name] for name in (*names, "p_adjusted")}
    worst = question.find_worst(row["model"], row["target"])
    part = row["part"] if question.compares_models else row["target"]
    return {**facts, "part": part, "worst": tuple(str(group["group"]) for group in worst)}


def select_first(conclusions: Sequence[Conclusion], n: int = FIRST) -> list[Conclusion]:
    """Return the first conclusions, with some of each kind that comes before the others."""
    limits = {"check": MAX_CHECKS, "reranking": MAX_RERANKING, "groups": RESERVED}
    limits["rounds"] = MAX_ROUNDS  # the last: these give way where all kinds are there
    leading = [
        item
        for kind, most in limits.items()
        for item in [each for each in conclusions if each.kind == kind][:most]
    ]
    others = [item for item in conclusions if item.kind == "groups" or item.kind not in limits]
    others = [item for item in others if item not in leading]
    chosen = [*leading, *others][:n]
    return [item for item in conclusions if item in chosen]


def split_conclusions(run: RunTables) -> tuple[list[Conclusion], list[Conclusion]]:
    """Return the first conclusions, and the others."""
    conclusions = collect_conclusions(run)
    first = select_first(conclusions)
    return first, [item for item in conclusions if item not in first]
