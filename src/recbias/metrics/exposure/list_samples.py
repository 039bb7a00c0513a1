"""Several lists of one query, sampled from a stochastic model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Ids, Matrix
from recbias.core.errors import NothingLeft, UnknownColumn
from recbias.core.measurements.scores import Measurement, UnitScores
from recbias.core.outputs.evidence import Evidence
from recbias.core.stage_context import warn


@dataclass(frozen=True, eq=False)
class ListSamples:
    """Which lists are samples for the same query.

    Args:
        ids: The distinct queries, or None if each query has one list.
        units: The distinct query of each list, ``int[q]``; -1 if it is not known.
    """

    ids: Ids | None
    units: AnyArray

    def average(self, rows: Matrix) -> Matrix:
        """Return the mean over the lists of each distinct query, CSR."""
        return rows if self.ids is None else self._build_means() @ rows

    def unite(self, rows: Matrix) -> Matrix:
        """Return the items that any list of a distinct query has, CSR of ones."""
        if self.ids is None:
            return rows
        united = self._build_means() @ rows
        united.data[:] = 1.0
        return united

    def measure(self, evidence: Evidence, values: FloatArray) -> Measurement:
        """Return the mean of one value for each distinct query."""
        if self.ids is None:
            return evidence.measure_queries(values)
        return Measurement.from_units(UnitScores(evidence.queries.unit, self.ids, values))

    def _build_means(self) -> Matrix:
        from scipy.sparse import csr_array

        lists = np.flatnonzero(self.units >= 0)
        units = self.units[lists]
        n_units = 0 if self.ids is None else self.ids.size
        parts = 1.0 / np.bincount(units, minlength=n_units)[units]
        return csr_array((parts, (units, lists)), shape=(n_units, self.units.size))


def read_list_samples(evidence: Evidence, label: str | None) -> ListSamples:
    """Return which lists are samples for the same query: those with one value of a label.

    Lists without the label are counted in a warning and left out.

    Raises:
        UnknownColumn: The queries have no such label.
        NothingLeft: No query has a value of it.
    """
    queries = evidence.queries
    if label is None:
        return ListSamples(None, np.arange(len(queries)))
    try:
        column = queries.labels.column(label)
    except UnknownColumn as error:
        raise UnknownColumn(error.message, where="samples_of", remedy=error.remedy) from error
    has_label = column.notna().to_numpy()
    if len(queries) and not has_label.any():
        remedy = "name a label that is the same for all lists of a query"
        raise NothingLeft(f"no query has a value of {label!r}", where="samples_of", remedy=remedy)
    if not has_label.all():
        n_missing = int(np.count_nonzero(~has_label))
        warn(f"{evidence.metric}: {n_missing:,} lists without {label} are excluded")
    texts = column[has_label].astype(str).to_numpy(dtype=object)
    ids, codes = np.unique(texts, return_inverse=True)
    units = np.full(len(queries), -1)
    units[has_label] = codes
    return ListSamples(ids, units)
