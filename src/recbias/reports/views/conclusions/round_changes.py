"""What is said about the rounds of a feedback loop: each value in the first and the last round."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from recbias.reports.markup import to_line
from recbias.reports.views.headline import list_single_datasets
from recbias.reports.views.round_curves import RoundCurve, list_round_curves
from recbias.reports.views.rounding import count_decimals, format_value
from recbias.reports.views.run_tables import RunTables

MOST_MODELS = 4
"""How many models a sentence names: those that change most."""


def describe_rounds(run: RunTables) -> Iterator[tuple[str, str, str, str]]:
    """Yield metric, dataset, a sentence and its detail for each value; nothing without feedback.

    The sentence has the values of each model in the first and the last round.
    """
    datasets = list_single_datasets(run)
    for dataset in datasets:
        curves = list_round_curves(run, dataset)
        where = f" on {to_line(dataset)}" if len(datasets) > 1 else ""
        for heading, group in itertools.groupby(curves, _describe_value):
            members = list(group)
            last = max(members[0].values)
            span = f"from round 1 to round {last}"
            sentence = f"{to_line(heading)}{where}, {span}: {_list_changes(members)}."
            detail = "The largest change first; no test compares the rounds."
            yield members[0].metric.title, dataset, sentence, detail


def _describe_value(curve: RoundCurve) -> str:
    return curve.metric.describe_value(curve.group, curve.target)


def _list_changes(curves: Sequence[RoundCurve]) -> str:
    """Return the first and last values of the models, the largest change first."""
    ends = [(curve.model, *_take_ends(curve)) for curve in curves]
    defined = [row for row in ends if not math.isnan(row[2] - row[1])]
    defined.sort(key=lambda row: -abs(row[2] - row[1]))
    displayed = defined[:MOST_MODELS]
    places = count_decimals([value for _, *values in displayed for value in values])
    texts = [
        f"{to_line(model)} {format_value(first, places)} to {format_value(last, places)}"
        for model, first, last in displayed
    ]
    rest = len(ends) - len(displayed)
    if not texts:
        return "undefined"
    return ", ".join(texts) + (f", and {rest} more" if rest else "")


def _take_ends(curve: RoundCurve) -> tuple[float, float]:
    return curve.values[min(curve.values)], curve.values[max(curve.values)]
