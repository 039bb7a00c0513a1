"""Groups of items by an attribute, their shares of exposure, and what is due to them.

    rbp    e(r) = gamma^(r - 1)       a user goes on to the next rank with probability gamma
    dcg    e(r) = 1 / log2(r + 1)

Ranks after the end of a list give no exposure. Groups may be known as probabilities, and a query
of a stochastic model may have several lists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Lt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Attributes, BoolArray, FloatArray, Ids, Matrix
from recbias.core.errors import (
    Contradiction,
    NothingLeft,
    OutOfRange,
    UnknownName,
    UserError,
    WrongType,
    at_setting,
)
from recbias.core.evidence import Evidence, rank_discounts
from recbias.core.grouping import parse_uncertain_label, read_uncertain_groups
from recbias.core.text import suggest
from recbias.kernels.sparse import build_rows, keep_columns
from recbias.metrics.base import mark_candidates
from recbias.metrics.popularity import build_history_matrix

BrowsingModel: TypeAlias = Literal["rbp", "dcg"]
"""The browsing models."""

Patience: TypeAlias = Annotated[float, Ge(0.0), Lt(1.0)]
"""The probability of going on to the next rank. With 1 every rank would have the same exposure and
the sum over the ranks would not converge."""


def weigh_ranks(browsing: BrowsingModel, gamma: float, n: int) -> FloatArray:
    """Return the exposure of the ranks 1 to ``n``, ``float64[n]``.

    >>> weigh_ranks("rbp", 0.5, 3).tolist(), weigh_ranks("dcg", 0.5, 3).round(4).tolist()
    ([1.0, 0.5, 0.25], [1.0, 0.6309, 0.5])
    """
    if browsing == "dcg":
        return rank_discounts(n)
    return np.power(gamma, np.arange(n, dtype=np.float64))


def build_exposure_matrix(evidence: Evidence, weights: FloatArray) -> Matrix:
    """Return the exposure of the items of each list, CSR ``(q, n_items + number outside)``.

    Args:
        evidence: The lists.
        weights: The exposure of each rank that counts.
    """
    lists = evidence.ranked
    items, filled = lists.items[:, : weights.size], lists.filled[:, : weights.size]
    n_columns = len(evidence.item_ids) + lists.outside.size
    return build_rows(items, filled, n_columns, weights[: items.shape[1]])


def select_relevant(evidence: Evidence) -> Matrix:
    """Return the candidates among the test items of each query, CSR ``(q, n_items)`` of ones."""
    evidence.need("test")
    return keep_columns(evidence.relevant, mark_candidates(evidence))


def select_histories(evidence: Evidence) -> Matrix:
    """Return the candidates in the history of each query, CSR ``(q, n_items)`` of ones."""
    from scipy.sparse import csr_array

    if evidence.train is None:
        return csr_array((len(evidence.queries), len(evidence.item_ids)))
    return keep_columns(build_history_matrix(evidence), mark_candidates(evidence))


def sum_rows(matrix: Matrix) -> FloatArray:
    """Return the sum of each row of a sparse matrix, ``float64[n]``."""
    return np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()


Multiple: TypeAlias = Literal["split", "full"]
"""What an item of several groups gives to each: an equal share of its exposure, or all of it."""

Ungrouped: TypeAlias = Literal["exclude", "group"]
"""Whether items without a group are excluded, or are a group of their own."""

_NO_GROUP = "(none)"
"""The group of the items without a group."""

DENSE_GROUPS = 64
"""The largest number of groups whose sums are arrays."""


@dataclass(frozen=True, eq=False)
class ItemGroups:
    """Groups of items.

    Args:
        attribute: The column of the items that holds them.
        names: The values of the column that an item that may be recommended has, sorted.
        weights: The part of each item in each group, CSR ``(n_items + number outside, g)``.
        sizes: The candidates of each group, each with its part, ``float64[g]``.
        is_uncertain: Whether the parts are probabilities, of which some are not 0 or 1.
    """

    attribute: str
    names: tuple[str, ...]
    weights: Matrix
    sizes: FloatArray
    is_uncertain: bool = False

    @cached_property
    def dense_weights(self) -> FloatArray:
        """The weights as an array."""
        return np.asarray(self.weights.toarray())

    def add_members(self, items: Matrix) -> Matrix | FloatArray:
        """Return ``sum_members`` as an array, which is faster, if there are few groups."""
        if len(self.names) > DENSE_GROUPS:
            return self.sum_members(items)
        return np.asarray(items @ self.dense_weights[: items.shape[1]])

    def sum_members(self, items: Matrix) -> Matrix:
        """Return the sum over the members of each group, CSR ``(n, g)``.

        Args:
            items: Values of items, CSR ``(n, n_items)`` or with the items outside as well.
        """
        return (items @ self.weights[: items.shape[1]]).tocsr()


def read_item_groups(
    evidence: Evidence, attribute: str, multiple: Multiple, ungrouped: Ungrouped
) -> ItemGroups:
    """Return the groups of items: the values of an attribute that candidates have.

    A value of other items only is no group, as if they lacked it. For ``weight of p_minor`` the
    part of item i in a group is its probability p_ig, so that the exposure of a group is its
    expectation Σ_i E_i p_ig: right if the exposure is independent of the group given the
    probability (Chen et al., "Fairness under unawareness", FAT* 2019).

    Raises:
        OutOfRange: A probability is not within 0 and 1, or columns do not add up to 1.
        Contradiction: ``probability of``, or ``multiple: full`` for probabilities.
        MissingEvidence: There is no items table.
        UnknownColumn: The items have no such column.
        WrongType: The column holds numbers with fractions, which are no groups.
        NothingLeft: Fewer than two groups have an item that may be recommended.
    """
    from scipy.sparse import csr_array, hstack, vstack

    evidence.need("items")
    try:
        values, members, is_uncertain = _read_members(evidence, attribute, multiple)
    except UserError as error:
        remedy = error.remedy
        if isinstance(error, WrongType):
            remedy = f"write weight of {attribute} if they are probabilities, or {remedy}"
        raise type(error)(error.message, where="attribute", remedy=remedy) from error
    candidates = mark_candidates(evidence)
    retained = np.flatnonzero(candidates @ members)
    n_outside = 0 if evidence.lists is None else evidence.lists.outside.size
    weights = vstack([members[:, retained], csr_array((n_outside, retained.size))], format="csr")
    names, n_groups = [values[code] for code in retained], np.diff(weights.indptr)
    if multiple == "split" and not is_uncertain:
        weights.data /= np.repeat(n_groups, n_groups)
    if ungrouped == "group" and (n_groups[: candidates.size][candidates] == 0).any():
        names.append(_NO_GROUP)
        weights = hstack([weights, csr_array((n_groups == 0)[:, None].astype(np.float64))], "csr")
    if len(names) < 2:
        held = f"only the group {names[0]!r} has" if names else "no group has"
        message = f"{held} an item that may be recommended, so nothing can be compared"
        remedy = "choose an attribute of which the items have at least two values"
        raise NothingLeft(f"{attribute!r}: {message}", where="attribute", remedy=remedy)
    sizes = np.asarray(candidates.astype(np.float64) @ weights[: candidates.size])
    is_uncertain = is_uncertain and bool((weights.data < 1.0).any())  # zeros are not stored
    return ItemGroups(attribute, tuple(names), weights, sizes, is_uncertain)


def _read_members(
    evidence: Evidence, attribute: str, multiple: Multiple
) -> tuple[tuple[str, ...], Matrix, bool]:
    """Return the values, the part of each item before it is split, and whether it is uncertain."""
    from scipy.sparse import csr_array

    items: Attributes = evidence.items  # type: ignore[assignment]  # the caller needs the items
    label = None if attribute in items.names else parse_uncertain_label(attribute)
    if label is None:
        membership = items.categories(attribute)
        return membership.values, membership.matrix.astype(np.float64), False
    columns = " + ".join(label.columns)
    if label.assumption == "probability":
        message = f"{attribute!r}: the exposure of a group is a sum weighted by probabilities"
        raise Contradiction(message, remedy=f"write weight of {columns}")
    if multiple == "full":
        message = f"{attribute!r}: an item has no full part in a group of which it is uncertain"
        raise Contradiction(message, remedy="remove multiple")
    groups = read_uncertain_groups(items, attribute)
    return groups.names, csr_array(np.nan_to_num(groups.probabilities)), True


def warn_ungrouped(evidence: Evidence, groups: ItemGroups, k: int | None) -> None:
    """Warn of the positions of the lists whose item is in no group."""
    items = evidence.ranked.items[:, :k]
    in_group = np.append(np.diff(groups.weights.indptr) > 0, True)  # -1 is no item
    n_excluded = int(np.count_nonzero(~in_group[items]))
    if n_excluded:
        message = f"hold an item of no group of {groups.attribute!r} and are excluded"
        warn(f"{evidence.metric}: {n_excluded:,} positions of the lists {message}")


_TargetName: TypeAlias = Literal["catalogue", "interactions", "relevant", "equal"]
"""The targets that are computed."""

Target: TypeAlias = _TargetName | Mapping[str, float]
"""A target that is computed, or the share of each group."""

_TOLERANCE = 1e-6
"""How far the shares of a target may sum to another number than 1."""

_NEEDS: Mapping[str, frozenset[str]] = {
    "interactions": frozenset({"train"}),
    "relevant": frozenset({"test"}),
}
"""The evidence that a target needs besides the items."""


def list_target_needs(target: Target) -> frozenset[str]:
    """Return the evidence that a target needs besides the items."""
    return _NEEDS.get(target, frozenset()) if isinstance(target, str) else frozenset()


def validate_target(target: Target) -> None:
    """Check the shares of a target.

    Raises:
        OutOfRange: A share is negative, or they do not sum to 1.
    """
    if isinstance(target, str):
        return
    remedy = "write the share of each group, 0 or more, so that they sum to 1: {F: 0.5, M: 0.5}"
    wrong = {name: share for name, share in target.items() if not share >= 0}
    if wrong:
        name, share = next(iter(wrong.items()))
        message = f"the share of {name!r} is {share:g}, not 0 or more"
        raise OutOfRange(message, where="target", remedy=remedy)
    total = math.fsum(target.values())
    if not abs(total - 1.0) <= _TOLERANCE:
        message = f"the shares of the target sum to {total:g}, not to 1"
        raise OutOfRange(message, where="target", remedy=remedy)


def compute_target_shares(evidence: Evidence, target: Target, groups: ItemGroups) -> FloatArray:
    """Return the target share of each group, the same for all queries, ``float64[g]``.

    A group that a mapping does not name has 0. ``relevant`` are the relevant items of all queries
    together. NaN if there is none, or no training interaction.

    Raises:
        UnknownName: A mapping names a group that no item has.
        MissingEvidence: The target needs interactions or a test set, which there are not.
        NothingLeft: The training interactions are all with items without a group.
    """
    if not isinstance(target, str):
        return _read_shares(target, groups)
    if target == "equal":
        totals = np.ones(len(groups.names))
    elif target == "catalogue":
        totals = groups.sizes
    elif target == "interactions":
        totals = evidence.popularity @ groups.weights[: len(evidence.item_ids)]
        if not totals.sum() > 0:
            message = f"no training interaction is with an item that has {groups.attribute}"
            raise NothingLeft(message, where="target", remedy="choose the target catalogue")
    else:
        totals = np.asarray(groups.sum_members(select_relevant(evidence)).sum(axis=0))
    total = float(totals.sum())
    return np.asarray(totals / total if total > 0 else np.full(totals.size, np.nan))


def _read_shares(target: Mapping[str, float], groups: ItemGroups) -> FloatArray:
    for name in target:
        if name not in groups.names:
            message = f"no item that may be recommended has the {groups.attribute} {name!r}"
            remedy = suggest(name, groups.names)
            raise UnknownName(message, where="target", remedy=remedy)
    return np.array([float(target.get(name, 0.0)) for name in groups.names])


def measure_hidden_variance(
    evidence: Evidence, groups: ItemGroups, exposure: Matrix, defined: BoolArray, target: Target
) -> FloatArray:
    """Return the variance of the gap of each group over its unknown members, ``float64[g]``.

        V_g = Σ_i ( s_i - t_i )² p_ig (1 - p_ig)

    s_i is the mean share of item i in the exposure of the lists, t_i its part of the target, 0 if
    the target does not depend on the groups of the items, and p_ig the probability that it is in
    group g. Given the probabilities, the groups of two items are independent. Known groups have 0.

    Args:
        evidence: The candidates, the training interactions and the relevant items.
        groups: The groups.
        exposure: The exposure of the items in each list, CSR ``(q, n_items + number outside)``.
        defined: Which lists the gap is a mean of, ``bool[q]``.
        target: The target of the gap.

    >>> from scipy.sparse import csr_array
    >>> groups = ItemGroups("p", ("p", "not p"), csr_array([[0.5, 0.5], [1.0, 0.0]]), np.ones(2))
    >>> exposure, lists = csr_array([[1.0, 3.0]]), np.ones(1, dtype=bool)
    >>> measure_hidden_variance(None, groups, exposure, lists, "equal").tolist()  # ¼² · ½ · ½
    [0.015625, 0.015625]
    """
    from scipy.sparse import csr_array

    shares = _share_items(exposure, groups, defined)
    due: Matrix | None = None
    if target == "relevant":
        due = select_relevant(evidence)
    elif target == "catalogue":
        due = csr_array(mark_candidates(evidence).astype(np.float64)[None])
    elif target == "interactions":
        due = csr_array(np.asarray(evidence.popularity, dtype=np.float64)[None])
    if due is not None:
        rows = defined if due.shape[0] == defined.size else np.ones(1, dtype=bool)
        shares[: due.shape[1]] -= _share_items(due, groups, rows)
    weights = groups.weights.tocoo()
    terms = shares[weights.row] ** 2 * weights.data * (1.0 - weights.data)
    sums = np.bincount(weights.col, weights=terms, minlength=len(groups.names))
    return np.asarray(sums, dtype=np.float64)


def _share_items(rows: Matrix, groups: ItemGroups, used: BoolArray) -> FloatArray:
    """Return the mean share of each item in the rows used, of items with a group, ``float64[n]``.

    A row without an item with a group has the share 0.
    """
    totals = sum_rows(groups.sum_members(rows))
    parts = np.divide(1.0, totals, out=np.zeros_like(totals), where=(totals > 0) & used)
    return np.asarray(rows.T @ parts / max(np.count_nonzero(used), 1))


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

    def _build_means(self) -> Matrix:
        from scipy.sparse import csr_array

        lists = np.flatnonzero(self.units >= 0)
        units = self.units[lists]
        n_units = 0 if self.ids is None else self.ids.size
        parts = 1.0 / np.bincount(units, minlength=n_units)[units]
        return csr_array((parts, (units, lists)), shape=(n_units, self.units.size))


def read_list_samples(evidence: Evidence, label: str | None) -> ListSamples:
    """Return which lists are samples for the same query: those with one value of a label.

    Lists without the label are left out.

    Raises:
        UnknownColumn: The queries have no such label.
        NothingLeft: No query has a value of it.
    """
    queries = evidence.queries
    if label is None:
        return ListSamples(None, np.arange(len(queries)))
    with at_setting("samples_of"):
        column = queries.labels.column(label)
    has_label = column.notna().to_numpy()
    if len(queries) and not has_label.any():
        remedy = "name a label that is the same for all lists of a query"
        raise NothingLeft(f"no query has a value of {label!r}", where="samples_of", remedy=remedy)
    texts = column[has_label].astype(str).to_numpy(dtype=object)
    ids, codes = np.unique(texts, return_inverse=True)
    units = np.full(len(queries), -1)
    units[has_label] = codes
    return ListSamples(ids, units)
