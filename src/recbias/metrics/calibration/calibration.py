"""How far the attributes of a user's list differ from those of the user's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Gt, Interval

from recbias.core.arrays import FloatArray, Matrix
from recbias.core.inherited_sections import InheritsSections
from recbias.core.measurements.scores import Direction, Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.metrics.calibration.attribute_shares import (
    Discount,
    Weight,
    read_attribute_shares,
    share_histories,
    share_lists,
)
from recbias.numerics.divergences import compute_js_divergence, compute_kl_divergence

BLOCK_ROWS = 2**14
"""The number of queries whose shares are compared at once."""


class _CalibrationMetric(InheritsSections):
    """A divergence between the attribute values of a list and those of the history.

    Args:
        attribute: A column of the items, or a label of a detector: ``genres``, ``ngim.gender``. An
            item of several values counts in each with equal shares. A column of numbers within 0
            and 1 has two values, x and 1 - x.
        discount: The weight of rank r in q: ``none`` is 1, ``reciprocal`` 1 / r and ``log``
            1 / log2(r + 1).
        weight: The weight of an item of the history in p: ``equal``, or its ``rating``.
        k: How many ranks of each list are evaluated; by default all.

    Raises:
        UnknownColumn: The items have no such column.
        WrongType: The column holds numbers that are neither within 0 and 1 nor whole.
        NothingLeft: No item has the attribute.
        OutOfRange: A rating is negative, with ``weight: rating``.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "train", "items"})
    unit: ClassVar[str] = "query"

    attribute: str
    discount: Discount
    weight: Weight
    k: int | None

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the attribute, or it has no categories."""
        read_attribute_shares(evidence, self.attribute)

    def measure(self, evidence: Evidence) -> Sequence[Measurement]:
        """Return the value of each query, and their mean."""
        evidence.need("lists")
        shares = read_attribute_shares(evidence, self.attribute)
        histories = share_histories(evidence, shares, self.weight)
        lists = share_lists(evidence, shares, self.discount, self.k, self.attribute)
        blocks = [slice(at, at + BLOCK_ROWS) for at in range(0, len(evidence.queries), BLOCK_ROWS)]
        values = [self._diverge(histories[block], lists[block]) for block in blocks]
        return [evidence.measure_queries(np.concatenate([np.empty(0), *values]))]

    def _diverge(self, histories: Matrix | FloatArray, lists: Matrix | FloatArray) -> FloatArray:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class CalibrationKL(_CalibrationMetric):
    """Kullback-Leibler divergence of the attributes of a user's list from those of the history.

        KL(p, q') = Σ_g p(g) ln( p(g) / q'(g) ),    q'(g) = (1 - a) q(g) + a p(g)
        p(g) = Σ_{i in H} w_i s(g, i) / Σ_{i in H} w_i
        q(g) = Σ_{r ≤ k} e(r) s(g, i_r) / Σ_{r ≤ k} e(r)

    s(g, i) is the share of the value g in item i, H the history of the user, i_r the item at rank
    r. 0 is a calibrated list: it has each value in the proportion of the history. -ln a (4.605 for
    0.01) is a list with none of the values of the history. A value that the list adds counts only
    by what it takes from the others. Items without the attribute are excluded from both. Undefined
    if the history or the list has no item with the attribute, and for a query that is no user.
    Code that takes the logarithm to base 2 returns 1.443 times the value. Short lists cannot hold
    all values of a long history: compare lists of one length.

    Args:
        smoothing: a, the part of p in q', so that q' is above 0 where p is.

    Range:
        0 or more, at most -ln a; undefined for a history or list without the attribute.

    Source:
        Steck, "Calibrated recommendations", RecSys 2018, equations 2, 3 and 5 to 7.
    """

    direction: ClassVar[Direction] = "lower"

    attribute: str
    smoothing: Annotated[float, Interval(gt=0, lt=1)] = 0.01
    discount: Discount = "none"
    weight: Weight = "equal"
    k: Annotated[int, Gt(0)] | None = None

    def _diverge(self, histories: Matrix | FloatArray, lists: Matrix | FloatArray) -> FloatArray:
        return compute_kl_divergence(histories, lists, self.smoothing)


@dataclass(frozen=True, kw_only=True)
class CalibrationJS(_CalibrationMetric):
    """Rank-aware Jensen-Shannon divergence between the attributes of list and history.

        JS(p, q) = Σ_g ( p(g) log2( p(g) / m(g) ) + q(g) log2( q(g) / m(g) ) ) / 2
        m(g) = ( p(g) + q(g) ) / 2
        p(g) = Σ_{i in H} w_i s(g, i) / Σ_{i in H} w_i
        q(g) = Σ_{r ≤ k} e(r) s(g, i_r) / Σ_{r ≤ k} e(r),    e(r) = 1 / r

    s(g, i) is the share of the value g in item i, H the history of the user, i_r the item at rank
    r. 0 is a calibrated list, 1 a list that has no value in common with the history; values that
    the list adds count as much as those that it lacks. The authors' code returns the square root
    of the divergence, smooths both shares (0.001), and discounts the history too. Undefined if the
    history or the list has no item with the attribute, and for a query that is no user.

    Range:
        0 to 1; undefined for a history or list without the attribute.

    Source:
        Vrijenhoek, Bénédict, Gutierrez Granada, Odijk and de Rijke, "RADio: rank-aware divergence
        metrics to measure normative diversity in news recommendations", RecSys 2022, calibration.
    """

    direction: ClassVar[Direction] = "lower"

    attribute: str
    discount: Discount = "reciprocal"
    weight: Weight = "equal"
    k: Annotated[int, Gt(0)] | None = None

    def _diverge(self, histories: Matrix | FloatArray, lists: Matrix | FloatArray) -> FloatArray:
        return compute_js_divergence(histories, lists)
