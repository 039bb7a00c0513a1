"""Base classes of the popularity metrics with one value for each query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.popularity.counted_popularity import count_by_user
from recbias.metrics.popularity.desiderata import Desideratum, evaluate_desiderata
from recbias.metrics.popularity.item_popularity import (
    aggregate_histories,
    aggregate_lists,
    aggregate_sets,
    average_rows,
    build_history_matrix,
    build_list_matrix,
    is_counted,
    read_popularity,
)
from recbias.statistics.bootstrap.counted_bootstrap import resample_counts


class PopularityMetric(InheritsSections):
    """A metric of popularity, which is counted or read from a column of the items.

    Args:
        popularity: What φ is: ``train`` counts the training interactions (the default), ``all``
            those of all parts of the split; any other text is a column of the items. Columns
            called ``train`` and ``all`` are written ``items.train`` and ``items.all``.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        MissingEvidence: A column is given, and there is no items table.
        UnknownColumn: The items have no such column, or it is not numeric.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "train"})
    unit: ClassVar[str] = "query"
    also_needs: ClassVar[frozenset[str]] = frozenset()
    """The kinds of evidence that the metric needs, wherever the popularity comes from."""

    if TYPE_CHECKING:

        @property
        def popularity(self) -> str | None:
            """The interactions that are counted, or a column; None counts those of training."""

        @property
        def k(self) -> int | None:
            """The cutoff."""

    def needs_now(self) -> frozenset[str]:
        """Return the kinds of evidence: a popularity column replaces the training interactions."""
        return self.also_needs | {"lists", "train" if is_counted(self.popularity) else "items"}

    def check(self, evidence: Evidence) -> None:
        """Raise UnknownColumn if the items have no such numeric column."""
        read_popularity(evidence, self.popularity)


class HistoryComparison(PopularityMetric):
    """A metric that compares the popularity of a user's list with that of the history."""

    also_needs = frozenset({"train"})
    aggregate: ClassVar[Callable[..., FloatArray]] = average_rows
    """From rows of items and the value of each item to one value for each row."""

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        values = self._transform(read_popularity(evidence, self.popularity))
        aggregate = type(self).aggregate
        lists = aggregate_lists(evidence, values, aggregate, self.k)
        histories = aggregate_histories(evidence, values, aggregate)
        measurement = evidence.measure_queries(self._compare(lists, histories))
        return [self._add_interval(measurement, evidence)]

    def _add_interval(self, measurement: Measurement, evidence: Evidence) -> Measurement:
        """Return the measurement with an interval that accounts for counted popularity."""
        if not is_counted(self.popularity):
            return measurement
        low, high = resample_counts(
            measurement.units.values,  # type: ignore[union-attr]  # a value for each query
            evidence.queries.users,
            count_by_user(evidence, self.popularity),
            partial(self._prepare, evidence),
            rng=evidence.rng(),
        )
        return replace(measurement, ci_low=low, ci_high=high, own_interval=True)

    def _prepare(self, evidence: Evidence, rows: AnyArray) -> Callable[[FloatArray], FloatArray]:
        """Return a function from the popularity of each item to the value of these queries."""
        lists = build_list_matrix(evidence, self.k)[rows]
        histories = build_history_matrix(evidence)[rows]
        aggregate = type(self).aggregate

        def evaluate(popularity: FloatArray) -> FloatArray:
            values = self._transform(popularity)
            return self._compare(aggregate(lists, values), aggregate(histories, values))

        return evaluate

    def compare_sets(self, recommended: FloatArray, consumed: FloatArray) -> FloatArray:
        """Return the value for sets of popularities, ``float64[..., n]``."""
        lists, histories = (
            aggregate_sets(self._transform(sets), type(self).aggregate)
            for sets in (recommended, consumed)
        )
        return self._compare(lists, histories)

    def desiderata(self) -> Sequence[Desideratum]:
        """Return which of the five desiderata the metric satisfies on random sets."""
        return evaluate_desiderata(self)

    def _transform(self, popularity: FloatArray) -> FloatArray:
        return popularity

    def _compare(self, lists: FloatArray, histories: FloatArray) -> FloatArray:
        return lists - histories
