"""Base classes of the metrics of the lists under each value of a label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn
from recbias.metrics.prompts.query_labels import group_queries, lacks_label
from recbias.metrics.prompts.slot_counts import check_attribute


@dataclass(frozen=True, kw_only=True)
class LabelMetric(InheritsSections):
    """A metric of an attribute of the items recommended under each value of a label.

    Args:
        label: A label of the queries, or a crossing of several.
        k: How many ranks of each list are evaluated; by default all.

    Where every query lacks the label, the value is undefined, and a warning says so: a dataset of
    several may have no such queries.

    Raises:
        UnknownColumn: The queries have no such label, or the items have no such column.
        NothingLeft: The label has one value only, or every item lacks the attribute.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})
    unit: ClassVar[str] = ""

    label: str
    attribute: str

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` that depend on labels and attributes only."""
        check_attribute(evidence, self.attribute)
        if not lacks_label(evidence, self.label):
            group_queries(evidence, self.label)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the estimates; one undefined estimate without a query."""
        evidence.need("lists")
        check_attribute(evidence, self.attribute)
        if not len(evidence.queries):
            return [Measurement(math.nan, n=0, undefined=0)]
        if lacks_label(evidence, self.label):
            warn(f"{evidence.metric}: no query carries the label {self.label!r}")
            return [Measurement(math.nan, n=0, undefined=len(evidence.queries))]
        return self._measure(evidence)

    def _measure(self, evidence: Evidence) -> Sequence[Measurement]:
        raise NotImplementedError


class UnitMetric(LabelMetric):
    """A metric whose statistics are those of units, such as the names that carry the label.

    Args:
        units: The units of the statistics: by default names, if each label value has several,
            otherwise templates.
        words: The column of the words that carry the label; by default it is detected.
        permutations: The number of sampled permutations; fewer possible ones are all enumerated.
    """

    count_names: ClassVar[tuple[str, ...]]
    """The names of the entries of ``Measurement.counts``, row by row."""

    def omitted_settings(self) -> frozenset[str]:
        """Return the settings of the tests, which do not change the value."""
        return frozenset({"permutations"})
