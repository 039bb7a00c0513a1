"""Calibration: how far the attributes of a user's list differ from those of the user's history.

The shares of the values of an item attribute in lists and histories, and their Kullback-Leibler
and Jensen-Shannon divergences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Interval

from recbias.core.dataset import AnyArray, BoolArray, FloatArray, Matrix
from recbias.core.errors import NothingLeft, OutOfRange, at_setting
from recbias.core.evidence import Evidence
from recbias.core.measures import ROUNDING, Bounds, Direction, Measurement
from recbias.kernels.sparse import build_rows
from recbias.metrics.base import Cutoff, PerQuery, locate_items

_Discount: TypeAlias = Literal["none", "reciprocal", "log"]
"""The weight of rank r of a list: 1, 1 / r, or 1 / log2(r + 1)."""

_Weight: TypeAlias = Literal["equal", "rating"]
"""The weight of an item of a history."""

DENSE_VALUES = 64
"""The largest number of values whose shares are arrays."""


def read_attribute_shares(evidence: Evidence, attribute: str) -> Matrix:
    """Return the share of each value in each item, CSR ``float64 (n_items, values)``.

    An item with m values has each with 1 / m; the row of an item without the attribute is empty. A
    numeric column within 0 and 1, such as the label of a detector, has two values: x and 1 - x.

    Raises:
        UnknownColumn: The items have no such column.
        WrongType: The column holds numbers that are neither within 0 and 1 nor whole.
        NothingLeft: No item has the attribute.
    """
    from scipy.sparse import csr_array, diags_array

    evidence.need("items")
    with at_setting("attribute"):
        column = evidence.items.column(attribute)  # type: ignore[union-attr]  # need() raises
    if column.isna().all():
        remedy = "choose a column that the items have"
        raise NothingLeft(f"no item has {attribute!r}", where="attribute", remedy=remedy)
    if column.dtype.kind == "f":
        numbers = column.to_numpy(dtype=np.float64)
        if np.nanmin(numbers) >= 0 and np.nanmax(numbers) <= 1:
            shares = csr_array(np.nan_to_num(np.column_stack([numbers, 1.0 - numbers])))
            shares.eliminate_zeros()
            return shares
    with at_setting("attribute"):
        matrix = evidence.items.categories(attribute).matrix  # type: ignore[union-attr]
    n_values = np.diff(matrix.indptr)
    return (diags_array(1.0 / np.maximum(n_values, 1)) @ matrix.astype(np.float64)).tocsr()


def _share_lists(
    evidence: Evidence, shares: Matrix, discount: _Discount, k: int | None, attribute: str
) -> Matrix | FloatArray:
    """Return the weighted share of each value in the first ``k`` items of each list.

    The shares are an array if there are few values, else CSR.
    Positions whose item does not have the attribute are excluded and counted in a warning.
    """
    item = f"an item without the attribute {attribute!r}"
    items, counted = locate_items(evidence, np.diff(shares.indptr) > 0, k, item)
    weights = _weigh_ranks(items.shape[1], discount)
    lists = build_rows(items, counted, len(evidence.item_ids), weights)
    return _normalize(lists @ _convert_few(shares))


def _share_histories(evidence: Evidence, shares: Matrix, weight: _Weight) -> Matrix | FloatArray:
    """Return the weighted share of each value in the history of each query.

    The shares are an array if there are few values, else CSR.

    Raises:
        OutOfRange: A rating is negative, and histories are weighted by ratings.
    """
    from scipy.sparse import csr_array, vstack

    evidence.need("train")
    train = evidence.train
    histories = train.binary if weight == "equal" else train.weighted  # type: ignore[union-attr]
    if histories.nnz and histories.data.min() < 0:
        message = f"a rating is {histories.data.min():g}, and a weight cannot be negative"
        raise OutOfRange(message, where="weight", remedy="choose weight: equal")
    users = _normalize(histories.astype(np.float64) @ _convert_few(shares))
    if np.array_equal(evidence.queries.users, np.arange(users.shape[0])):
        return users
    if isinstance(users, np.ndarray):
        return np.pad(users, ((0, 1), (0, 0)))[evidence.queries.users]
    no_history = csr_array((1, shares.shape[1]), dtype=np.float64)
    return vstack([users, no_history], format="csr")[evidence.queries.users]


def _weigh_ranks(k: int, discount: _Discount) -> FloatArray:
    ranks = np.arange(1, k + 1, dtype=np.float64)
    weights = {"none": np.ones(k), "reciprocal": 1.0 / ranks, "log": 1.0 / np.log2(ranks + 1.0)}
    return weights[discount]


def _convert_few(shares: Matrix) -> Matrix | FloatArray:
    """Return the shares of a few values as an array, with which products are faster."""
    return shares.toarray() if shares.shape[1] <= DENSE_VALUES else shares


def _normalize(totals: Matrix | FloatArray) -> Matrix | FloatArray:
    """Return the rows divided by their sums, without cells of 0."""
    if isinstance(totals, np.ndarray):
        sums = totals.sum(axis=1, keepdims=True)
        return np.divide(totals, sums, out=totals, where=sums > 0)
    totals = totals.tocsr()
    totals.eliminate_zeros()
    totals.sort_indices()
    totals.data /= np.repeat(totals.sum(axis=1), np.diff(totals.indptr))
    return totals


def _compute_kl_divergence(target: Matrix, shares: Matrix, smoothing: float) -> FloatArray:
    """Return the smoothed Kullback-Leibler divergence of each row, in nats.

        KL(p, q') = Σ_g p_g ln( p_g / q'_g ),    q' = (1 - a) q + a p

    0 if the rows are equal, and -ln a if they share no column. NaN for a row without entries.

    Args:
        target: The shares p, CSR ``(n, g)`` or an array; the entries of a row are positive and
            sum to 1.
        shares: The shares q, of the same form.
        smoothing: a, above 0 and at most 1.

    >>> from scipy.sparse import csr_array
    >>> p, q = csr_array([[0.5, 0.5]]), csr_array([[1.0, 0.0]])
    >>> float(_compute_kl_divergence(p, q, 0.5)[0].round(6))  # ln(2/3) / 2 + ln(2) / 2
    0.143841

    Source:
        Steck, "Calibrated recommendations", RecSys 2018, equations 5 and 6.
    """
    rows, p, q = _align_common(target, shares)
    terms = p * np.log(smoothing * p / ((1.0 - smoothing) * q + smoothing * p))
    return _finish(target, shares, rows, terms, -np.log(smoothing))


def compute_js_divergence(target: Matrix, shares: Matrix) -> FloatArray:
    """Return the Jensen-Shannon divergence of each row, in bits.

        JS(p, q) = Σ_g ( p_g log2( p_g / m_g ) + q_g log2( q_g / m_g ) ) / 2,    m = (p + q) / 2

    0 if the rows are equal, and 1 if they share no column. NaN for a row without entries.

    Args:
        target: The shares p, CSR ``(n, g)`` or an array; the entries of a row are positive and
            sum to 1. Or ``float64[g]`` for all rows, if q is CSR.
        shares: The shares q, of the same form.

    >>> from scipy.sparse import csr_array
    >>> p, q = csr_array([[0.5, 0.5]]), csr_array([[1.0, 0.0]])
    >>> float(compute_js_divergence(p, q)[0].round(6))
    0.311278

    Source:
        Lin, "Divergence measures based on the Shannon entropy", IEEE Transactions on Information
        Theory 1991.
    """
    rows, p, q = _align_common(target, shares)
    terms = (p * np.log2(p / (p + q)) + q * np.log2(q / (p + q))) / 2.0
    return _finish(target, shares, rows, terms, 1.0)


def _align_common(target: Matrix, shares: Matrix) -> tuple[AnyArray, FloatArray, FloatArray]:
    """Return the rows and both shares of the cells that are not 0 in either matrix."""
    if target.ndim == 1:
        kept = target[shares.indices] > 0
        rows = np.repeat(np.arange(shares.shape[0]), np.diff(shares.indptr))[kept]
        return rows, target[shares.indices[kept]], shares.data[kept]
    if isinstance(target, np.ndarray):
        cells = np.flatnonzero((target > 0) & (shares > 0))
        return cells // max(target.shape[1], 1), target.ravel()[cells], shares.ravel()[cells]
    common = target.sign().multiply(shares.sign()).tocsr()
    p, q = (matrix.multiply(common).tocsr() for matrix in (target, shares))
    for matrix in (p, q):
        matrix.sort_indices()
    return np.repeat(np.arange(p.shape[0]), np.diff(p.indptr)), p.data, q.data


def _finish(
    target: Matrix, shares: Matrix, rows: AnyArray, terms: FloatArray, disjoint: float
) -> FloatArray:
    """Return the divergence of rows without a common cell, plus the terms of the common cells.

    A sum that is 0 but for rounding is 0: a ratio of two of them would be any number.
    """
    sums = disjoint + np.bincount(rows, weights=terms, minlength=shares.shape[0])
    sums[sums < ROUNDING] = 0.0
    has_both = _has_entries(target) & _has_entries(shares)
    return np.where(has_both, np.minimum(sums, disjoint), np.nan)


def _has_entries(shares: Matrix) -> BoolArray:
    if shares.ndim == 1:
        return np.asarray(~np.isnan(shares.sum()))
    is_array = isinstance(shares, np.ndarray)
    return np.asarray(shares.any(axis=1) if is_array else np.diff(shares.indptr) > 0)


_BLOCK_ROWS = 2**14
"""The number of queries whose shares are compared at once."""


@dataclass(frozen=True, kw_only=True)
class _CalibrationMetric(PerQuery):
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

    attribute: str
    discount: _Discount = "none"
    weight: _Weight = "equal"
    k: Cutoff = None

    def check(self, evidence: Evidence) -> None:
        """Raise an error if the items lack the attribute, or it has no categories."""
        read_attribute_shares(evidence, self.attribute)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        evidence.need("lists")
        shares = read_attribute_shares(evidence, self.attribute)
        histories = _share_histories(evidence, shares, self.weight)
        lists = _share_lists(evidence, shares, self.discount, self.k, self.attribute)
        blocks = [
            slice(at, at + _BLOCK_ROWS) for at in range(0, len(evidence.queries), _BLOCK_ROWS)
        ]
        values = [self._diverge(histories[block], lists[block]) for block in blocks]
        return np.concatenate([np.empty(0), *values])

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

    smoothing: Annotated[float, Interval(gt=0, lt=1)] = 0.01

    def find_bounds(self, row: Measurement) -> Bounds:
        """Return 0 and -ln a."""
        return 0.0, -math.log(self.smoothing)

    def _diverge(self, histories: Matrix | FloatArray, lists: Matrix | FloatArray) -> FloatArray:
        return _compute_kl_divergence(histories, lists, self.smoothing)


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

    discount: _Discount = "reciprocal"

    def _diverge(self, histories: Matrix | FloatArray, lists: Matrix | FloatArray) -> FloatArray:
        return compute_js_divergence(histories, lists)
