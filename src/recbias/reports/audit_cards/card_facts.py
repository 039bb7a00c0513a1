"""The facts of an audit card for people: what was audited, on whom, and what limits it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recbias.reports.audit_cards.card import Card, CheckPart, DatasetPart, ModelPart
from recbias.reports.views.facts import Fact, format_setting
from recbias.reports.views.rounding import format_count

COVERED = (
    "Intervals and tests cover the sampling of units such as users, not the choice of the "
    "dataset, the split, the settings and the measures."
)
"""The limit that every card has."""


def describe_subject(card: Card) -> list[Fact]:
    """Return what was audited: models, datasets, versions and the digest of the spec."""
    audited = card.audited
    libraries = [f"{name} {version}" for name, version in audited.libraries.items() if version]
    return [
        Fact("Experiment", audited.name),
        *([Fact("Checks", count_verdicts(card.checks))] if card.checks else []),
        *(Fact("Model", _describe_model(model)) for model in audited.models),
        *(Fact("Dataset", _describe_dataset(dataset)) for dataset in audited.datasets),
        *([Fact("Split", _describe(audited.split))] if audited.split else []),
        Fact("Seeds", ", ".join(map(str, audited.seeds))),
        Fact("recbias", f"{audited.recbias}, commit {audited.commit or 'not known'}"),
        Fact("Versions", ", ".join([f"Python {audited.python}", *libraries])),
        Fact("Digest of the spec", audited.spec_digest),
    ]


def _describe(part: Any) -> str:
    return format_setting({"name": part.label, **part.parameters})


def _describe_model(model: ModelPart) -> str:
    searched = f", tuned: {', '.join(model.searched)}" if model.searched else ""
    return _describe(model) + searched


def _describe_dataset(dataset: DatasetPart) -> str:
    counts = ", ".join(
        f"{n:,} {name.replace('_', ' ')}" for name, n in dataset.counts.items() if n
    )
    filters = ", ".join(map(_describe, dataset.filters))
    files = ", ".join(f"{name} {digest[:16]}" for name, digest in dataset.files.items())
    texts = [counts, filters and f"filters: {filters}", files and f"SHA-256 of files: {files}"]
    return "; ".join([dataset.label, *filter(None, texts)])


def describe_people(card: Card) -> list[Fact]:
    """Return whom the audit was on: the queries, and the size of each group."""
    facts = []
    for queries in card.queries:
        settings = {name: value for name, value in queries.parameters.items() if value}
        settings = {
            name: value for name, value in settings.items() if (name, value) != ("folds", 1)
        }
        count = format_count(queries.asked, queries.unit)
        text = ", ".join(filter(None, [count, format_setting(settings)]))
        facts.append(Fact(f"Queries of {queries.dataset}", text))
    for dataset in dict.fromkeys(group.dataset for group in card.groups):
        groups = [f"{g.group} {g.n:,}" for g in card.groups if g.dataset == dataset]
        facts.append(Fact(f"Groups of {dataset}", ", ".join(groups)))
    return facts


def list_limits(card: Card) -> list[str]:
    """Return what restricts the conclusions, one sentence each; always what intervals cover."""
    limits = card.limits
    undefined = [f"{title} {n:,.0f}" for title, n in limits.undefined.items() if n]
    sentences = [*limits.failures, *limits.missing_outputs, *limits.warnings]
    if card.audited.limit:
        count = format_count(card.audited.limit, "query")
        sentences.insert(0, f"Smoke test: the first {count} only.")
    if undefined:
        sentences.append(f"Undefined values, excluded from the means: {', '.join(undefined)}.")
    for n, noun, name in (
        (limits.omitted_estimates, "estimate", "metrics.csv"),
        (limits.omitted_comparisons, "comparison", "significance.csv"),
    ):
        if n:
            sentences.append(f"{format_count(n, noun)} of a target: only in {name}.")
    return [*sentences, COVERED]


def count_verdicts(checks: Sequence[CheckPart]) -> str:
    """Return the number of checks with each verdict."""
    counts = [
        f"{sum(row.verdict == name for row in checks):,} {name}"
        for name in ("fail", "undecided", "pass")
    ]
    return ", ".join(counts)
