"""The number of stages of a spec, from the lengths of its lists, before an entry is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recbias.core.errors import OutOfRange
from recbias.formats.yaml.source_map import Document

MOST_STAGES = 100_000
"""The largest plan: planning this many stages takes some ten seconds."""


MOST_ENTRIES = 1_000
"""The largest number of entries of a list: a longer one is a fault by itself."""


def count_stages(
    *, contexts: int, labels: int, models: int, metrics: int, rounds: int = 1, trials: int = 0
) -> int:
    """Return the number of stages of a plan, at most.

    A context (a fold of a dataset under a seed) has a stage for its data, its split, its queries
    and each label. A model has two stages, and one for each metric, in each round of feedback.
    ``trials`` are those of all searches, with the stage that selects the best.

    >>> count_stages(contexts=5, labels=0, models=300, metrics=300)
    453015
    """
    return contexts * (3 + labels + models * (2 + metrics) * rounds + trials)


def describe_excess(n_stages: int) -> tuple[str, str]:
    """Return the message and the remedy for a plan of too many stages."""
    message = f"{n_stages:,} stages are more than {MOST_STAGES:,}"
    return (
        message,
        "use fewer seeds, folds, trials, rounds, models or metrics, or several specs",
    )


def refuse_large_plan(document: Document) -> None:
    """Raise the faults of a document, its sweep expanded, that would have too many stages.

    An entry that stands for several models or metrics counts as one.

    Raises:
        Faults: It would have too many.
    """
    data = document.data
    lengths = {key: _count(data.get(key)) for key in ("dataset", "seeds")}
    folds = max(_read(data.get(key), "folds") for key in ("split", "queries"))
    models = data.get("models")
    trials = [_count_trials(model) for model in models] if isinstance(models, list) else []
    n_stages = count_stages(
        contexts=max(lengths["dataset"], 1) * max(lengths["seeds"], 1) * folds,
        labels=_count(data.get("labels")),
        models=_count(models),
        metrics=_count(data.get("metrics")),
        rounds=_read(data.get("feedback"), "rounds"),
        trials=sum(trials),
    )
    if n_stages > MOST_STAGES:
        message, remedy = describe_excess(n_stages)
        document.add_fault(("models",), message, remedy=remedy, kind=OutOfRange)
        document.refuse()


def _count(entries: Any) -> int:
    is_counted = isinstance(entries, list) and len(entries) <= MOST_ENTRIES
    return len(entries) if is_counted else 0


def _count_trials(model: Any) -> int:
    """Return the stages of the search of a model, one more than its trials."""
    search = model.get("tune") if isinstance(model, Mapping) else None
    return _read(search, "trials") + 1 if search else 0


def _read(entry: Any, key: str) -> int:
    """Return a number above 0 in an entry; 1 where there is none, or a fault found elsewhere."""
    value = entry.get(key) if isinstance(entry, Mapping) else None
    return value if isinstance(value, int) and value > 0 else 1
