"""Exposure: how much of it lists give to items and to groups of items, against what is due.

    rbp    e(r) = gamma^(r - 1)       a user goes on to the next rank with probability gamma
    dcg    e(r) = 1 / log2(r + 1)

Ranks after the end of a list give no exposure. Attention in proportion to relevance, expected
exposure against that of ideal rankings, ratios between groups of items, and gaps between the
shares of groups (genders, providers) and targets. Groups may be known as probabilities, and a
query of a stochastic model may have several lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
from annotated_types import Ge, Lt

from recbias.core.context import warn
from recbias.core.dataset import AnyArray, Attributes, BoolArray, FloatArray, Ids, Matrix, divide
from recbias.core.docstrings import InheritsSections
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
from recbias.core.measures import Direction
from recbias.core.plugins import OnlyWith
from recbias.core.text import suggest
from recbias.kernels.sparse import build_rows, keep_columns
from recbias.metrics.base import (
    Cutoff,
    Grouped,
    PerQuery,
    Totals,
    WholeSet,
    mark_candidates,
)
from recbias.metrics.calibration import compute_js_divergence
from recbias.metrics.popularity import build_history_matrix
from recbias.statistics.inequality import gini

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


@dataclass(frozen=True, kw_only=True)
class _Exposed(InheritsSections):
    """A measure of the exposure that lists give to items.

    Args:
        browsing: How much exposure a rank r gives: ``rbp`` for gamma^(r - 1), or ``dcg`` for
            1 / log2(r + 1).
        gamma: The probability that a user goes on to the next rank; below 1.
        k: How many ranks of each list are evaluated; by default all.
    """

    browsing: BrowsingModel = "rbp"
    gamma: Annotated[Patience, OnlyWith("browsing", "rbp")] = 0.8
    k: Cutoff = None

    def expose_items(self, evidence: Evidence) -> Matrix:
        """Return the exposure of the items of each list, CSR ``(q, n_items + n outside)``."""
        n_ranks = evidence.ranked.k if self.k is None else self.k
        return build_exposure_matrix(evidence, weigh_ranks(self.browsing, self.gamma, n_ranks))


@dataclass(frozen=True, kw_only=True)
class _OfGroups(_Exposed):
    """A measure of the exposure that lists give to groups of items.

    Args:
        attribute: The column of the items that holds their groups, also a label of a detector
            (``ngim.gender``); a cell ``a|b`` is in both groups. ``weight of p_minor`` names a
            column of probabilities, by which exposure is weighted. Its groups are unknown:
            ``exposure_gap`` has an interval that accounts for this, other measures have none, and
            tests compare models given the probabilities.
        multiple: What an item of several groups gives to each: ``split`` an equal share of its
            exposure and relevance, ``full`` all of it.
        ungrouped: Whether items without a group are left out and counted in a warning
            (``exclude``), or are the group ``(none)`` (``group``).

    Raises:
        UnknownColumn: The items have no such column.
        WrongType: It holds numbers with fractions, which are no groups.
        NothingLeft: Fewer than two groups have an item that may be recommended.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items"})

    attribute: str
    multiple: Multiple = "split"
    ungrouped: Ungrouped = "exclude"

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` about the groups."""
        self.read_groups(evidence)

    def read_groups(self, evidence: Evidence) -> ItemGroups:
        """Return the groups of the items."""
        return read_item_groups(evidence, self.attribute, self.multiple, self.ungrouped)

    def expose_groups(self, evidence: Evidence, groups: ItemGroups) -> Matrix:
        """Return the exposure of each group in each list, CSR ``(q, g)``.

        Positions that hold an item without a group are counted in a warning.
        """
        warn_ungrouped(evidence, groups, self.k)
        return groups.sum_members(self.expose_items(evidence))

    def interval(self, evidence: Evidence, _: object) -> tuple[float, float] | None:
        """Return no interval, with a warning, if the groups are unknown."""
        return _refuse_interval(evidence, self.read_groups(evidence))


def _refuse_interval(evidence: Evidence, groups: ItemGroups) -> tuple[float, float] | None:
    if not groups.is_uncertain:
        return None
    cause = f"the groups of the items are unknown ({groups.attribute})"
    scope = "only exposure_gap has an interval that accounts for them"
    warn(f"{evidence.metric}: no interval, because {cause}; {scope}")
    return nan, nan


@dataclass(frozen=True, kw_only=True)
class _OfTargets(_OfGroups):
    """A measure that compares the exposure of groups of items with target shares.

    Args:
        target: The shares that the groups should have: ``catalogue`` for their shares of the items
            that may be recommended, ``interactions`` of the training interactions, ``relevant`` of
            the test items that may be recommended, ``equal`` for the same share each, or a
            share for each group: ``{F: 0.5, M: 0.5}``. A group that it does not name has 0.

    Raises:
        OutOfRange: The shares of the target do not sum to 1, or one is negative.
        UnknownName: The target names a group that no item has.
    """

    target: Target = "catalogue"

    def __post_init__(self) -> None:
        validate_target(self.target)

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return self.needs | list_target_needs(self.target)

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` about the groups and the target."""
        compute_target_shares(evidence, self.target, self.read_groups(evidence))


@dataclass(frozen=True, kw_only=True)
class AWRF(_OfTargets, PerQuery):
    """How near the shares of exposure of the groups of items are to target shares, in each list.

        AWRF(q) = 1 - JSD(a, p),    a_g = Σ_r e(r) A_{i_r, g} / Σ_h Σ_r e(r) A_{i_r, h}
        JSD(a, p) = ½ Σ_g a_g log2(2 a_g / (a_g + p_g)) + ½ Σ_g p_g log2(2 p_g / (a_g + p_g))

    A_{i,g} is the part of item i in group g, e(r) the exposure of rank r, and p the target. 1 is
    the target itself; 0 is reached if only groups with target 0 are shown. The logarithm has base
    2; TREC's script uses the natural one, with which the lowest value is 0.307, and the same
    exposure for the ranks 1 and 2. A short list cannot match a target of many groups: compare with
    Random. The target ``relevant`` is that of each query. Undefined for a list without an item of
    a group, and for a query without a relevant item of a group, if the target is ``relevant``.

    Range:
        0 to 1; undefined for a list without an item of a group.

    Source:
        Sapiezynski, Zeng, Robertson, Mislove and Wilson, "Quantifying the impact of user attention
        on fair group representation in ranked lists", WWW 2019 companion; with this divergence:
        Ekstrand, McDonald, Raj and Johnson, "Overview of the TREC 2022 fair ranking track".
    """

    direction: ClassVar[Direction] = "higher"

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        groups = self.read_groups(evidence)
        target: FloatArray | Matrix
        if self.target == "relevant":
            target = _scale_rows(groups.sum_members(select_relevant(evidence)))
        else:
            target = compute_target_shares(evidence, self.target, groups)
        attention = _scale_rows(self.expose_groups(evidence, groups))
        return 1.0 - compute_js_divergence(target, attention)


def _scale_rows(rows: Matrix) -> Matrix:
    """Return the rows divided by their sums; a row without an entry above 0 stays empty."""
    totals = sum_rows(rows)
    parts = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)
    scaled = rows.astype(np.float64)
    scaled.data *= np.repeat(parts, np.diff(rows.indptr))
    scaled.eliminate_zeros()
    return scaled


@dataclass(frozen=True, kw_only=True)
class AmortizedAttention(_Exposed, WholeSet):
    """Inequity of amortized attention: attention to each item against its relevance.

        IAA = (1 / n) Σ_i | (1 / |Q|) Σ_q (a_qi - r_qi) |

    a_qi is the share of item i in the exposure of the list of query q, r_qi = 1 / |R_q| if it is
    one of the relevant items R_q (the test items that may be recommended), else 0, and n the
    number of items that may be recommended. 0 is attention in proportion to relevance over all
    queries, although no single list is fair. A list without an item gives no attention, and
    attention to items that may not be recommended is not counted. Queries without a relevant item
    are excluded and counted. It is above 0 by chance, more so with few queries: compare models on
    the same queries only. The code of Rampisela et al. (WWW 2025) takes the mean of the absolute
    differences within each list instead, which is not amortized. Undefined without a query with a
    relevant item.

    Range:
        0 to 1, at most 2 / n; undefined without a query with a relevant item.

    Source:
        Biega, Gummadi and Weikum, "Equity of attention: amortizing individual fairness in
        rankings", SIGIR 2018, unfairness, there summed over the items and lists: here divided by
        their numbers, so that it can be compared between samples.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test"})
    direction: ClassVar[Direction] = "lower"

    def totals(self, evidence: Evidence) -> Totals:
        """Return what each list adds, and the estimate."""
        relevant, candidates = select_relevant(evidence), mark_candidates(evidence)
        queries = np.flatnonzero(np.diff(relevant.indptr) > 0)
        attention = _scale_rows(self.expose_items(evidence))[:, : candidates.size]
        excess = (attention - _scale_rows(relevant))[:, np.flatnonzero(candidates)]
        excess = excess if queries.size == excess.shape[0] else excess[queries]

        def estimate(sums: AnyArray) -> FloatArray:
            return np.asarray(np.abs(sums).mean(axis=-1) / max(queries.size, 1))

        n_excluded = len(evidence.queries) - queries.size
        return Totals(excess, estimate, n_excluded=n_excluded)


@dataclass(frozen=True, eq=False)
class _TargetExposure:
    """The exposure of the items under ideal rankings, and what the lists give them.

    Args:
        exposure: The exposure of each item, CSR ``(q, n)``; the mean over its lists. Sums over
            groups are arrays if there are few groups.
        relevant: The relevant items, and ``histories`` the items that the query cannot be
            recommended, CSR ``(q, n)`` of ones.
        candidates: Which items may be recommended to anybody, 0 or 1, ``float64[n]``.
        best: The exposure of each relevant item in an ideal ranking, ``float64[q]``; ``rest`` that
            of each other candidate.
    """

    exposure: Matrix
    relevant: Matrix
    histories: Matrix
    candidates: FloatArray
    best: FloatArray
    rest: FloatArray

    def __len__(self) -> int:
        return int(self.best.size)

    def sum_members(self, groups: ItemGroups) -> _TargetExposure:
        """Return the same for groups of items: the sums over their members."""
        return replace(
            self,
            exposure=groups.add_members(self.exposure),
            relevant=groups.add_members(self.relevant),
            histories=groups.add_members(self.histories),
            candidates=groups.sizes,
        )

    def split(self, size: int) -> Iterator[_TargetExposure]:
        """Yield blocks of ``size`` queries."""
        names = ("exposure", "relevant", "histories", "best", "rest")
        for start in range(0, len(self), size):
            yield replace(
                self, **{name: getattr(self, name)[start : start + size] for name in names}
            )

    def disparity(self) -> FloatArray:
        """Return the sum of the squared exposures of each query, ``float64[q]``."""
        return sum_rows(self.exposure**2)

    def relevance(self) -> FloatArray:
        """Return the product of exposure and target exposure of each query, ``float64[q]``."""
        to_relevant = sum_rows(self.exposure * self.relevant)
        to_history = sum_rows(self.exposure * self.histories)
        to_others = self.exposure @ self.candidates - to_history - to_relevant
        return np.asarray(self.best * to_relevant + self.rest * to_others)

    def target_square(self) -> FloatArray:
        """Return the sum of the squared target exposures of each query, ``float64[q]``."""
        more = self.relevant * (self.best - self.rest)[:, None]
        difference = more - self.histories * self.rest[:, None]
        crossed: FloatArray = 2.0 * self.rest * (difference @ self.candidates)
        return (
            self.rest**2 * (self.candidates @ self.candidates) + crossed + sum_rows(difference**2)
        )

    def loss(self) -> FloatArray:
        """Return the squared distance of exposure and target exposure, ``float64[q]``."""
        loss = self.disparity() - 2.0 * self.relevance() + self.target_square()
        return np.maximum(loss, 0.0)  # rounding


def _build_target_exposure(
    evidence: Evidence,
    exposure: Matrix,
    samples: ListSamples,
    browsing: BrowsingModel,
    gamma: float,
) -> _TargetExposure:
    """Return the exposure of each item by query, with its target.

    ``best`` and ``rest`` are NaN for a query without a relevant item. Test items that are no
    candidates are counted in a warning.
    """
    relevant = select_relevant(evidence)
    n_excluded = int(evidence.n_relevant.sum()) - int(relevant.nnz)
    if n_excluded:
        message = "test items cannot be recommended and are not relevant"
        warn(f"{evidence.metric}: {n_excluded:,} {message}")
    shape = exposure.shape
    n_outside = shape[1] - len(evidence.item_ids)
    relevant, histories = (
        samples.unite(_widen(rows, shape)) for rows in (relevant, select_histories(evidence))
    )
    candidates = np.append(mark_candidates(evidence), np.zeros(n_outside, dtype=bool))
    n_relevant = np.diff(relevant.indptr)
    n_candidates = np.count_nonzero(candidates) - np.diff(histories.indptr)
    n_others = np.maximum(n_candidates - n_relevant, 0)
    totals = np.append(0.0, np.cumsum(weigh_ranks(browsing, gamma, int(candidates.sum()))))
    first = totals[n_relevant]
    last = totals[np.minimum(n_relevant + n_others, totals.size - 1)] - first
    undefined = n_relevant == 0
    best = np.where(undefined, np.nan, first / np.maximum(n_relevant, 1))
    rest = np.where(undefined, np.nan, last / np.maximum(n_others, 1))
    return _TargetExposure(
        samples.average(exposure), relevant, histories, candidates.astype(np.float64), best, rest
    )


def _widen(rows: Matrix, shape: tuple[int, int]) -> Matrix:
    from scipy.sparse import csr_array

    return csr_array((rows.data, rows.indices, rows.indptr), shape=shape)


BLOCK_ROWS = 2**14
"""The number of queries whose groups are summed at once."""


@dataclass(frozen=True, kw_only=True)
class _ExpectedExposure(_Exposed, PerQuery):
    """A measure of the expected exposure.

    Args:
        attribute: A column of the items that holds groups (authors, genres, ``ngim.gender``): the
            exposures and targets of the members are summed first. By default each item is alone.
            The authors' code does so with complete judgements; without, and in TREC's script of
            2022, only relevant members count.
        multiple: What an item of several groups gives to each: ``split`` an equal share of its
            exposure, ``full`` all of it.
        ungrouped: Whether items without a group are left out and counted in a warning
            (``exclude``), or are the group ``(none)`` (``group``).
        samples_of: A label of the queries: the lists of one value are samples for one query from a
            stochastic model, and E is the mean over them. By default each query has one list.

    Raises:
        UnknownColumn: The items have no such column, or the queries no such label.
        WrongType: The column holds numbers with fractions, which are no groups.
        NothingLeft: Fewer than two groups have an item that may be recommended.
        MissingEvidence: An attribute is given, and there is no items table.

    Range:
        0 or more; undefined for a query without a relevant item.

    Source:
        Diaz, Mitra, Ekstrand, Biega and Carterette, "Evaluating stochastic rankings with expected
        exposure", CIKM 2020.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "test"})
    score: ClassVar[Callable[[_TargetExposure], FloatArray]]

    attribute: str | None = None
    multiple: Annotated[Multiple, OnlyWith("attribute")] = "split"
    ungrouped: Annotated[Ungrouped, OnlyWith("attribute")] = "exclude"
    samples_of: str | None = None

    @property
    def unit(self) -> str:  # type: ignore[override]
        """The unit of the scores; blank if lists share a score, which cannot be grouped."""
        return "query" if self.samples_of is None else ""

    def needs_now(self) -> frozenset[str]:
        """Return the evidence needed with these settings."""
        return self.needs | (frozenset() if self.attribute is None else {"items"})

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` about the groups and the samples."""
        read_list_samples(evidence, self.samples_of)
        self._read_groups(evidence)

    def values(self, evidence: Evidence) -> FloatArray:
        """Return the value of each query."""
        evidence.need("test")
        samples = read_list_samples(evidence, self.samples_of)
        if n_missing := int(np.count_nonzero(samples.units < 0)):
            warn(f"{evidence.metric}: {n_missing:,} lists without {self.samples_of} are excluded")
        items = _build_target_exposure(
            evidence, self.expose_items(evidence), samples, self.browsing, self.gamma
        )
        blocks, groups = iter([items]), self._read_groups(evidence)
        if groups is not None:
            warn_ungrouped(evidence, groups, self.k)
            blocks = (block.sum_members(groups) for block in items.split(BLOCK_ROWS))
        values = np.concatenate([np.empty(0), *map(type(self).score, blocks)])
        return np.where(np.isnan(items.best), np.nan, values)

    def interval(self, evidence: Evidence, values: FloatArray) -> tuple[float, float] | None:
        """Return no interval, with a warning, if the groups are unknown."""
        groups = self._read_groups(evidence)
        return None if groups is None else _refuse_interval(evidence, groups)

    def _read_groups(self, evidence: Evidence) -> ItemGroups | None:
        if self.attribute is None:
            return None
        return read_item_groups(evidence, self.attribute, self.multiple, self.ungrouped)

    def units(self, evidence: Evidence) -> tuple[str, Ids]:
        """Return the kind and the names of the queries, each of which may have several lists."""
        ids = read_list_samples(evidence, self.samples_of).ids
        unit, queries = evidence.queries.unit, evidence.queries.ids.ids
        return unit, queries if ids is None else ids


class ExpectedExposureDisparity(_ExpectedExposure):
    """How unequally exposure is distributed within a query: 0 if nothing is shown.

        EE-D(q) = Σ_i E_i²

    E_i is the exposure of item i in the list of query q, or of group i with ``attribute``: the
    mean over the lists of a stochastic model, or that in one list. A single list of n items always
    has EE-D = Σ_{r ≤ n} e(r)²: over items, only several lists for each query (``samples_of``) tell
    models apart. With few lists, EE-D is larger than its expectation. It depends on the number of
    groups and ranks; compare models on the same data only. Undefined for a query without a
    relevant item, as EE-R and EE-L are, so that EE-L = EE-D - 2 EE-R + constant also holds for the
    means.
    """

    direction: ClassVar[Direction] = "lower"
    score = _TargetExposure.disparity


class ExpectedExposureRelevance(_ExpectedExposure):
    """How much exposure goes where an ideal ranking gives it.

        EE-R(q) = Σ_i E_i E*_i
        E*_i = (1/m) Σ_{r ≤ m} e(r)  if i is relevant, else (1/(n - m)) Σ_{m < r ≤ n} e(r)

    E_i is the exposure of item i in the list of query q (the mean over ``samples_of``), E*_i the
    target exposure: an ideal ranking has the m relevant items first, in random order, and then the
    others of the n candidates. With ``rbp`` the target of a relevant item is
    (1 - γ^m) / (m (1 - γ)) and that of another (γ^m - γ^n) / ((n - m)(1 - γ)). Relevant are the
    test items that may be recommended; candidates are all items that may be, without the training
    items of the user. A listed item that is no candidate keeps its rank and has target 0. With
    ``attribute``, exposures and targets are summed over the members of each group. Undefined
    without a relevant item.
    """

    direction: ClassVar[Direction] = "higher"
    score = _TargetExposure.relevance


class ExpectedExposureLoss(_ExpectedExposure):
    """The distance between the exposure of the items and that of an ideal ranking.

        EE-L(q) = Σ_i (E_i - E*_i)² = EE-D(q) - 2 EE-R(q) + Σ_i (E*_i)²

    E_i is the exposure of item i in the list of query q (the mean over ``samples_of``), E*_i the
    target exposure, in which all relevant items share the first ranks equally and all other
    candidates the ranks after them (see EE-R). With ``attribute``, exposures and targets are
    summed over the members of each group first. 0 is the target itself. One list cannot reach it
    over items if a query has several relevant items, nor can a list shorter than the candidates.
    Undefined without a relevant item.
    """

    direction: ClassVar[Direction] = "lower"
    score = _TargetExposure.loss


@dataclass(frozen=True, kw_only=True)
class _ExposureRatio(_OfGroups, WholeSet):
    """The smallest value of a group of items divided by the largest, over all lists together."""

    direction: ClassVar[Direction] = "higher"
    log_scale = True

    def _expose(self, evidence: Evidence, groups: ItemGroups) -> Matrix | FloatArray:
        """Return the exposure of each group in each list, ``(q, g)``."""
        warn_ungrouped(evidence, groups, self.k)
        return groups.add_members(self.expose_items(evidence))

    def totals(self, evidence: Evidence) -> Totals:
        """Return the exposure of each group, divided by the number of its candidates."""
        groups = self.read_groups(evidence)
        exposure = self._expose(evidence, groups)
        return Totals(exposure, lambda sums: sums / groups.sizes, groups=groups.names)

    def summarize(self, values: FloatArray) -> FloatArray:
        """Return the ratio of the smallest value of a group to the largest."""
        return _divide_extremes(values)

    def _compare_relevance(
        self, evidence: Evidence, groups: ItemGroups, gains: Matrix | FloatArray, relevant: Matrix
    ) -> Totals:
        """Return the ratio of the gains by the relevance of each group."""
        from scipy.sparse import hstack

        queries = np.flatnonzero(np.diff(relevant.indptr) > 0)
        relevance = groups.add_members(relevant)
        n_without = int(np.count_nonzero(np.asarray(relevance.sum(axis=0)) == 0))
        if n_without and queries.size:
            message = "have no relevant item and are excluded"
            warn(f"{evidence.metric}: {n_without:,} groups of {self.attribute} {message}")
        n = len(groups.names)

        def estimate(sums: AnyArray) -> FloatArray:
            return divide(sums[..., :n], sums[..., n:])

        is_array, parts = isinstance(gains, np.ndarray), [gains, relevance]
        totals = np.hstack(parts) if is_array else hstack(parts, format="csr")
        totals = totals if queries.size == totals.shape[0] else totals[queries]
        n_excluded = len(evidence.queries) - queries.size
        return Totals(totals, estimate, n_excluded=n_excluded, groups=groups.names)


@dataclass(frozen=True, kw_only=True)
class ExposureParity(_ExposureRatio):
    """Demographic parity: the mean exposure of the group of items with the least, over the most.

        EXP = min_g x_g / max_g x_g,    x_g = Σ_q Σ_{i in g} E_qi / |g|

    E_qi is the exposure of item i in the list of query q, and |g| the number of items of group g
    that may be recommended, shown or not. 1 is parity, 0 a group that is never shown. With several
    groups it compares the two extreme ones only; with many it is near 0 by chance (see
    ``provider_gap``). Undefined if no item with a group is shown. The interval is symmetric on the
    scale of the logarithm.

    Range:
        0 to 1; undefined if no item with a group is shown.

    Source:
        Singh and Joachims, "Fairness of exposure in rankings", KDD 2018, demographic parity; as a
        ratio over several lists: Cachel and Rundensteiner, package FairRankTune, EXP.
    """

    browsing: BrowsingModel = "dcg"


@dataclass(frozen=True, kw_only=True)
class AttentionRatio(_ExposureRatio):
    """The mean attention to the group of items with the least, over that with the most.

        AWRF-min-max = min_g x_g / max_g x_g,    x_g = Σ_q Σ_{i in g} e(r_qi) / |g|

    e(r_qi) is γ^(r - 1) at the rank of item i in the list of query q, 0 if it is not there, and
    |g| the number of items of group g that may be recommended. The FairRankTune package calls this
    AWRF; it has no target, and differs from EXP in the attention only. ``AWRF`` is the other
    published form. Undefined if no item with a group is shown. The interval is symmetric on the
    scale of the logarithm.

    Range:
        0 to 1; undefined if no item with a group is shown.

    Source:
        Cachel and Rundensteiner, package FairRankTune, AWRF with MinMaxRatio; the attention
        after Sapiezynski et al., WWW 2019 companion.
    """


@dataclass(frozen=True, kw_only=True)
class ExposureToRelevance(_ExposureRatio):
    """Disparate treatment: exposure for each relevant item, of the group of items with the least.

        EXPU = min_g x_g / max_g x_g,    x_g = Σ_q Σ_{i in g} E_qi / Σ_q |R_q ∩ g|

    E_qi is the exposure of item i in the list of query q, and R_q its relevant items: the test
    items that may be recommended. 1 is exposure in proportion to relevance. Groups without a
    relevant item are excluded with a warning. Queries without a relevant item are excluded, and
    counted as undefined. Undefined if fewer than two groups remain, or none of them is shown. The
    interval is symmetric on the scale of the logarithm.

    Range:
        0 to 1; undefined if fewer than two groups have relevant items.

    Source:
        Singh and Joachims, "Fairness of exposure in rankings", KDD 2018, disparate treatment
        ratio; Cachel and Rundensteiner, package FairRankTune, EXPU.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items", "test"})
    browsing: BrowsingModel = "dcg"

    def totals(self, evidence: Evidence) -> Totals:
        """Return what each list adds, and the estimate."""
        relevant, groups = select_relevant(evidence), self.read_groups(evidence)
        exposure = self._expose(evidence, groups)
        return self._compare_relevance(evidence, groups, exposure, relevant)


@dataclass(frozen=True, kw_only=True)
class ClicksToRelevance(_ExposureRatio):
    """Disparate impact: clicks for each relevant item, of the group of items with the fewest.

        EXPRU = min_g x_g / max_g x_g,    x_g = Σ_q Σ_{i in R_q ∩ g} E_qi / Σ_q |R_q ∩ g|

    E_qi is the exposure of item i in the list of query q, and R_q its relevant items: the test
    items that may be recommended. An item is clicked if it is seen and relevant, so the expected
    number of clicks is its exposure if it is relevant, else 0. Groups without a relevant item are
    excluded with a warning. Queries without a relevant item are excluded, and counted as
    undefined. Undefined if fewer than two groups remain, or no relevant item is shown. The
    interval is symmetric on the scale of the logarithm.

    Range:
        0 to 1; undefined if fewer than two groups have relevant items.

    Source:
        Singh and Joachims, "Fairness of exposure in rankings", KDD 2018, disparate impact ratio;
        Cachel and Rundensteiner, package FairRankTune, EXPRU.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"lists", "items", "test"})
    browsing: BrowsingModel = "dcg"

    def totals(self, evidence: Evidence) -> Totals:
        """Return what each list adds, and the estimate."""
        relevant, groups = select_relevant(evidence), self.read_groups(evidence)
        exposure = self.expose_items(evidence)[:, : relevant.shape[1]]
        clicks = groups.add_members(exposure.multiply(relevant).tocsr())
        return self._compare_relevance(evidence, groups, clicks, relevant)


def _divide_extremes(values: FloatArray) -> FloatArray:
    """Return the smallest value divided by the largest, ``(..., g)`` to ``float64[...]``.

    NaN values are left out; NaN if fewer than two remain or the largest is 0.

    >>> _divide_extremes(np.array([[2.0, 4.0], [np.nan, 1.0], [0.0, 0.0]])).tolist()
    [0.5, nan, nan]
    """
    is_defined = ~np.isnan(values)
    smallest = np.where(is_defined, values, np.inf).min(axis=-1, initial=np.inf)
    largest = np.where(is_defined, values, -np.inf).max(axis=-1, initial=-np.inf)
    defined = (is_defined.sum(axis=-1) > 1) & (largest > 0)
    return divide(np.where(defined, smallest, np.nan), largest)


_MAX_GROUPS = 100
"""The number of groups that may have a row each."""


@dataclass(frozen=True, kw_only=True)
class ExposureGap(_OfTargets, Grouped):
    """The share of the exposure that each group of items has, minus its target share.

        gap(g) = (1 / |Q|) Σ_q a_qg - p_g,    a_qg = Σ_r e(r) A_{i_r, g} / Σ_h Σ_r e(r) A_{i_r, h}

    a_qg is the share of group g in the exposure of list q, e(r) the exposure of rank r, A_{i,g}
    the part of item i in group g, and p the target; the target ``relevant`` is that of each
    query. One row for each group; a positive value is more exposure than the target. The gaps of
    all groups sum to 0. Undefined for a list without an item of a group, and with the target
    ``relevant`` for a query without such an item. For groups known as probabilities
    (``weight of p_minor``) the interval is that of the hidden groups: it accounts for the sampling
    of queries and for the unknown groups of the items, which are independent given p.

    Args:
        only: The groups to report, by their values; by default all, at most 100.

    Raises:
        OutOfRange: There are more than 100 groups; the shares of the target do not sum to 1.
        UnknownName: ``only`` or the target names a group that no item has.

    Range:
        -1 to 1; undefined for a list without an item of a group.

    Source:
        Gómez, Boratto and Salamó, "Provider fairness across continents in collaborative
        recommender systems", Information Processing and Management 2022, disparate exposure, with
        the representation as target.
    """

    direction: ClassVar[Direction] = "zero"

    browsing: BrowsingModel = "dcg"
    only: tuple[str, ...] | None = None

    def check(self, evidence: Evidence) -> None:
        """Raise the errors of ``measure`` about the groups and the target."""
        super().check(evidence)
        self._find_columns(self.read_groups(evidence))

    def values(self, evidence: Evidence) -> Iterator[tuple[str, FloatArray, float]]:
        """Yield the gap of each query, for each group."""
        groups = self.read_groups(evidence)
        columns = self._find_columns(groups)
        shares = _scale_rows(self.expose_groups(evidence, groups))
        defined = np.diff(shares.indptr) > 0
        if self.target == "relevant":
            due = _scale_rows(groups.sum_members(select_relevant(evidence)))
            defined &= np.diff(due.indptr) > 0
            gaps = (shares - due).tocsc()
            fixed = np.zeros(len(groups.names))
        else:
            gaps = shares.tocsc()
            fixed = compute_target_shares(evidence, self.target, groups)
        hidden = np.full(len(groups.names), nan)
        if groups.is_uncertain:
            exposure = self.expose_items(evidence)
            hidden = measure_hidden_variance(evidence, groups, exposure, defined, self.target)
        for code in columns.tolist():
            values = gaps[:, [code]].toarray()[:, 0] - fixed[code]
            name = f"{self.attribute}={groups.names[code]}"
            yield name, np.where(defined, values, np.nan), float(hidden[code])

    def _find_columns(self, groups: ItemGroups) -> AnyArray:
        names = groups.names
        if self.only is None:
            if len(names) > _MAX_GROUPS:
                message = f"{self.attribute!r} has {len(names):,} groups, more than {_MAX_GROUPS}"
                remedy = "name groups (only: [...]), or summarise all of them by provider_gap"
                raise OutOfRange(message, where="only", remedy=remedy)
            return np.arange(len(names))
        for name in self.only:
            if name not in names:
                message = f"no item that may be recommended has the {self.attribute} {name!r}"
                raise UnknownName(message, where="only", remedy=suggest(name, names))
        return np.array([names.index(name) for name in self.only], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class ProviderGap(_OfTargets, WholeSet):
    """How far the providers' shares of exposure are from their target shares, on average.

        provider_gap = (1 / |G|) Σ_g | x_g / Σ_h x_h - p_g |,    x_g = Σ_q Σ_{i in g} E_qi

    G are the values of the attribute (authors, artists, sellers) with an item that may be
    recommended, E_qi is the exposure of item i in the list of query q, and p the target. The paper
    counts recommended items (every rank has the same exposure) and compares with the share of the
    training interactions (``target: interactions``). Half of |G| times the value is the share of
    the exposure that would have to be given to others. It is above 0 by chance, more so with many
    providers or few lists: compare models on the same queries only. Undefined if no item of a
    provider is shown; with the target ``relevant`` (the relevant items of all queries together)
    also without a relevant item.

    Range:
        0 to 1, at most 2 / |G|; undefined if no item of a provider is shown.

    Source:
        Abdollahpouri and Mansoury, "Multi-sided exposure bias in recommendation", IRS at KDD 2020,
        supplier popularity deviation; with the exposure of ranks as in Gómez, Boratto and Salamó,
        Information Processing and Management 2022.
    """

    direction: ClassVar[Direction] = "lower"

    browsing: BrowsingModel = "dcg"

    def totals(self, evidence: Evidence) -> Totals:
        """Return what each list adds, and the estimate."""
        from scipy.sparse import hstack

        groups = self.read_groups(evidence)
        totals, n = self.expose_groups(evidence, groups), len(groups.names)
        due = compute_target_shares(evidence, self.target, groups)
        if self.target == "relevant":
            relevance = groups.sum_members(select_relevant(evidence))
            totals = hstack([totals, relevance], format="csr")

        def estimate(sums: AnyArray) -> FloatArray:
            target = _compute_shares(sums[..., n:]) if self.target == "relevant" else due
            return np.asarray(_compute_shares(sums[..., :n]) - target)

        return Totals(totals, estimate, groups=groups.names)

    def summarize(self, values: FloatArray) -> FloatArray:
        """Return the mean absolute gap of the groups."""
        return np.asarray(np.abs(values).mean(axis=-1))


@dataclass(frozen=True, kw_only=True)
class ProviderGini(_OfGroups, WholeSet):
    """How unevenly the exposure is distributed over the providers of the items.

        Gini = Σ_j (2 j - |G| - 1) x_j / (|G| Σ_j x_j),    x ascending, j from 1

    G are the values of the attribute (authors, artists, sellers) with an item that may be
    recommended, and x_g = Σ_q Σ_{i in g} E_qi the exposure of provider g over all lists, 0 if it
    is never shown. 0 is equal exposure of all providers, however many items they offer. Undefined
    if no item of a provider is shown.

    Range:
        0 to 1 - 1/|G|; undefined if no item of a provider is shown.

    Source:
        Mansoury, Abdollahpouri, Pechenizkiy, Mobasher and Burke, "A graph-based approach for
        mitigating multi-sided exposure bias in recommender systems", ACM TOIS 2021, supplier Gini.
    """

    direction: ClassVar[Direction] = "lower"

    browsing: BrowsingModel = "dcg"

    def totals(self, evidence: Evidence) -> Totals:
        """Return what each list adds, and the estimate."""
        groups = self.read_groups(evidence)
        totals = self.expose_groups(evidence, groups)
        return Totals(totals, np.asarray, groups=groups.names)

    def summarize(self, values: FloatArray) -> FloatArray:
        """Return the Gini index of the exposures of the groups."""
        return gini(values)


def _compute_shares(totals: AnyArray) -> FloatArray:
    """Return the shares of totals ``(..., g)`` in their sum, NaN where it is 0."""
    sums = np.asarray(totals, dtype=np.float64).sum(axis=-1, keepdims=True)
    return divide(totals, sums)
