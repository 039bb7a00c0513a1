"""Groups of items by an attribute: genres, authors, sellers, or a label of a detector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.arrays import FloatArray, Matrix
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import Contradiction, NothingLeft, UserError, WrongType
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.uncertain_groups import parse_uncertain_label, read_uncertain_groups
from recbias.core.stage_context import warn
from recbias.metrics.exposure.browsing import mark_candidates

Multiple: TypeAlias = Literal["split", "full"]
"""What an item of several groups gives to each: an equal share of its exposure, or all of it."""

Ungrouped: TypeAlias = Literal["exclude", "group"]
"""Whether items without a group are excluded, or are a group of their own."""

NO_GROUP = "(none)"
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
        names.append(NO_GROUP)
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
