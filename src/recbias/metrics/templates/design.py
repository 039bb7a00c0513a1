"""The units that carry a label in queries from templates: names, or the templates themselves.

A label such as race belongs to the name in the slot, so eighteen sentences with one name are one
observation of that name. If a label value has one word only (a location), the sentences are the
units. If the words of several slots carry the label together (whether two persons have one
gender), the words of each slot are resampled and permuted separately. Without a ``template``
column each query is a unit; queries whose column ``neutral`` is 1 contain no word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.context import warn
from recbias.core.dataset import (
    SAMPLE,
    AnyArray,
    Attributes,
    BoolArray,
    Codes,
    FloatArray,
    Ids,
    Matrix,
)
from recbias.core.errors import NothingLeft, UnknownColumn, at_setting
from recbias.core.evidence import Evidence
from recbias.core.grouping import Groups, group_by, split_crossing
from recbias.statistics.bootstrap import (
    combine_slot_samples,
    count_slot_dfs,
    sample_cluster_weights,
    sample_slot_weights,
)

TEMPLATE, _KIND = "template", "kind"
"""The columns of queries from templates that hold neither words nor labels of words."""

NEUTRAL = "neutral"
"""Another such column: 1 for a template without a word, 0 for all other queries."""

_MAX_SLOTS = 3
"""The largest number of slots whose words are tested for determining a label together."""


def group_queries(evidence: Evidence, label: str) -> Groups:
    """Return the groups of the queries by a label of at least two values.

    Raises:
        UnknownColumn: No query carries the label; ``where`` is ``label``.
        NothingLeft: Every cell is missing, or the label has one value only.
    """
    with at_setting("label"):
        groups = group_by(evidence.queries.labels, label)
        if len(groups.names) < 2:
            message = f"the label {label!r} has one value only, {groups.names[0]}"
            raise NothingLeft(message, remedy="choose a label with at least two values")
    return groups


def lacks_label(evidence: Evidence, label: str) -> bool:
    """Return whether there are queries, and each lacks a label that is a column of them."""
    frame, parts = evidence.queries.labels.frame, list(split_crossing(label))
    if not len(frame) or not set(parts) <= set(frame.columns):
        return False
    return not frame[parts].notna().all(axis="columns").any()


def warn_unlabelled(evidence: Evidence, label: str, n: int) -> None:
    """Warn that ``n`` queries are excluded, since they do not carry the label."""
    if n:
        warn(f"{evidence.metric}: {n:,} queries carry no {label} and are excluded")


def encode_templates(evidence: Evidence) -> AnyArray:
    """Return the template of each query, ``int[q]`` from 0; -1 if it is missing."""
    return encode_column(evidence.queries.labels, TEMPLATE)


def mark_neutral(evidence: Evidence) -> BoolArray:
    """Return which queries are of a template without a word, ``bool[q]``."""
    labels = evidence.queries.labels
    if NEUTRAL not in labels.names:
        return np.zeros(len(labels.frame), dtype=bool)
    return np.asarray(labels.column(NEUTRAL) == 1)


def find_word_columns(labels: Attributes, groups: Groups, labelled: BoolArray) -> list[str]:
    """Return the columns of the words that carry a label, of those queries that have it.

    This is the column with the most distinct words among those in which every word has only one
    label value, if it has more words than the label has values and fewer than there are queries:
    ``name`` for race, ``first`` for the gender of the first of two persons. Without such a column,
    all word columns carry the label together: both persons, if the label is whether their genders
    are equal.
    """
    n_groups = len(groups.names)
    best, most_words = "", n_groups
    columns = _encode_columns(labels, groups, labelled)
    for name, codes in columns.items():
        n_words = np.unique(codes).size
        n_pairs = np.unique(codes * n_groups + groups.codes[labelled]).size
        if codes.min(initial=0) >= 0 and n_words == n_pairs and most_words < n_words < codes.size:
            best, most_words = name, n_words
    return [best] if best else list(columns)


def _encode_columns(
    labels: Attributes, groups: Groups, labelled: BoolArray
) -> dict[str, AnyArray]:
    """Return the cells of all columns but those of the label and the attributes of a template."""
    excluded = {TEMPLATE, _KIND, NEUTRAL, SAMPLE, *split_crossing(groups.by)}
    columns = [name for name in labels.names if name not in excluded]
    return {name: encode_column(labels, name)[labelled] for name in columns}


def encode_column(labels: Attributes, name: str) -> AnyArray:
    """Return the code of each cell, in the order of the values, ``int[q]``; -1 if missing."""
    return np.asarray(pd.factorize(labels.column(name), sort=True)[0], dtype=np.int64)


def encode_words(
    labels: Attributes, columns: Sequence[str], groups: Groups, labelled: BoolArray
) -> AnyArray:
    """Return one code for the words of each query and its label value, ``int[q]``, or -1.

    The codes are in the order of the words; words that occur with several label values have a code
    for each.
    """
    codes = np.zeros(len(labels.frame), dtype=np.int64)
    for name in columns:
        cells = encode_column(labels, name) + 1
        codes = codes * (cells.max(initial=0) + 1) + cells
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return np.where(labelled, codes * len(groups.names) + groups.codes, -1)


def join_words(labels: Attributes, columns: Sequence[str], rows: AnyArray) -> Ids:
    """Return the words in some rows, those of several columns joined by ``|``."""
    cells = labels.frame[list(columns)].iloc[rows].to_numpy(dtype=object)
    texts = ["|".join(str(word) for word in row if pd.notna(word)) for row in cells]
    return np.array(texts, dtype=object)


def find_slot_columns(labels: Attributes, groups: Groups, labelled: BoolArray) -> list[str]:
    """Return the fewest columns of words, at least two, that together determine the label.

    Columns that are determined by another one (the gender of a word) hold no words, and neither do
    texts that occur in only one query. If no few columns determine the label, all word columns are
    returned.
    """
    columns = _encode_columns(labels, groups, labelled)
    words = {
        name: codes
        for name, codes in columns.items()
        if codes.min(initial=0) >= 0 and 1 < np.unique(codes).size < codes.size
    }
    for name in reversed(tuple(words)):  # of two equivalent columns the earlier remains
        codes = words.pop(name)
        if not any(_determines(other_codes, codes) for other_codes in words.values()):
            words[name] = codes
    words = {name: words[name] for name in columns if name in words}
    for size in range(2, min(len(words), _MAX_SLOTS) + 1):
        for names in combinations(words, size):
            if _determines(_cross([words[name] for name in names]), groups.codes[labelled]):
                return list(names)
    return list(words)


def encode_unit_words(labels: Attributes, columns: Sequence[str], rows: AnyArray) -> AnyArray:
    """Return the word of each unit, one query of which is in ``rows``, in each slot.

    ``int[f, u]``, from 0 in each slot.
    """
    words = [encode_column(labels, name)[rows] for name in columns]
    return np.stack([np.unique(codes, return_inverse=True)[1] for codes in words])


def is_crossed(words: AnyArray) -> bool:
    """Return whether the units are all combinations of words, each once and in order.

    >>> is_crossed(np.array([[0, 0, 1, 1], [0, 1, 0, 1]]))
    True
    """
    sizes = tuple((words.max(axis=1) + 1).tolist())
    units = np.ravel_multi_index(tuple(words), sizes)
    return bool(np.array_equal(units, np.arange(np.prod(sizes))))


def has_shared_words(words: AnyArray) -> bool:
    """Return whether a word occurs in several units, ``int[f, u]``."""
    return any(np.unique(codes).size < codes.size for codes in words)


def _determines(codes: AnyArray, values: AnyArray) -> bool:
    """Return whether each code occurs with one value only."""
    return bool(np.unique(_cross([codes, values])).size == np.unique(codes).size)


def _cross(columns: Sequence[AnyArray]) -> AnyArray:
    """Return one code from 0 for each combination that occurs."""
    crossed = np.zeros_like(columns[0])
    for codes in columns:
        cells = crossed * (codes.max(initial=0) + 1) + codes
        crossed = np.unique(cells, return_inverse=True)[1]
    return crossed


@dataclass(frozen=True, eq=False)
class Design:
    """The units that carry a label.

    Args:
        unit: The kind of unit: ``name``, ``template``, or the unit of the queries.
        groups: The label values.
        ids: The identifier of each unit, ``object[u]``.
        queries: The unit of each query, ``int[q]``; -1 for those without the label.
        group: The label value of each unit, ``int[u]``.
        stratum: Units of one stratum occur in the same templates; labels are permuted within it.
        cluster: Units of one cluster are resampled together, ``int[u]``; a single cluster if units
            share words.
        sentences: The number of queries of each unit, ``float64[u]``.
        words: The word of each unit in each slot, ``int[f, u]``, with all combinations in order,
            if the words of several slots carry the label; otherwise None.
    """

    unit: str
    groups: Groups
    ids: Ids
    queries: AnyArray
    group: AnyArray
    stratum: AnyArray
    cluster: AnyArray
    sentences: FloatArray
    words: AnyArray | None = None

    @property
    def independent(self) -> bool:
        """Whether each unit is a cluster of its own."""
        return self.cluster.size == 0 or int(self.cluster.max()) + 1 == self.cluster.size

    @property
    def paired(self) -> bool:
        """Whether the label values share their units, which are templates."""
        return self.unit == TEMPLATE

    @property
    def cluster_strata(self) -> AnyArray:
        """The stratum in which each cluster is resampled: names within their label, ``int[n]``."""
        strata = np.zeros(int(self.cluster.max(initial=-1)) + 1, dtype=np.intp)
        if not self.paired:
            strata[self.cluster] = self.group
        return strata

    @property
    def df(self) -> int:
        """Degrees of freedom: the number of clusters minus the number of their strata."""
        strata = self.cluster_strata
        return int(strata.size - np.unique(strata).size)

    @property
    def crossing(self) -> AnyArray:
        """The label value of each combination of words, ``int[n1, n2, ...]``."""
        words = np.empty((0, 0)) if self.words is None else self.words
        return self.group.reshape(words.max(axis=1) + 1)

    def sample_weights(self, n_samples: int, rng: np.random.Generator) -> list[FloatArray]:
        """Return how often each unit is in each bootstrap sample, ``float64[b, u]``.

        There is one set of samples, or one for each set of slots if the words of several slots
        carry the label. A label value of one cluster has NaN.
        """
        if self.words is not None:
            return sample_slot_weights(self.crossing, n_samples, rng)
        return [sample_cluster_weights(self.cluster_strata, n_samples, rng)[:, self.cluster]]

    def combine_samples(
        self, point: FloatArray, samples: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the estimates on bootstrap samples of the whole design, and their df.

        ``samples`` are their values on each set of bootstrap samples, ``float64[S, b, ...]``.
        """
        dfs = (self.df,) if self.words is None else count_slot_dfs(self.crossing)
        return combine_slot_samples(point, samples, dfs)

    def count_units(self, mask: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return how many names or templates are in each column of a mask, and how many are not.

        If the words of several slots carry the label, the words of all slots are counted.

        Args:
            mask: ``bool[u, m]``; a template is one unit for each label value.

        Returns:
            ``int[m]`` and ``int[m]``.
        """
        factors = self.cluster[None] if self.words is None else self.words
        n, total = np.zeros(mask.shape[1], dtype=np.intp), 0
        for codes in factors:
            counted = np.zeros((int(codes.max(initial=-1)) + 1, mask.shape[1]), dtype=bool)
            np.logical_or.at(counted, codes, mask)
            n += np.count_nonzero(counted, axis=0)
            total += np.unique(codes).size
        return n, total - n

    def select(self, units: AnyArray) -> Design:
        """Return the design of some of the units, with empty ``queries``."""
        names = ("ids", "group", "stratum", "cluster", "sentences")
        selected = {name: vars(self)[name][units] for name in names}
        words = None if self.words is None else self.words[:, units]
        return replace(self, queries=np.empty(0, dtype=np.intp), words=words, **selected)


@dataclass(frozen=True, eq=False)
class SlotCounts:
    """How often each value of an item attribute occurs in the lists of each unit.

    Args:
        values: The attribute values, sorted.
        counts: The number of positions with an item of the value, ``float64[u, m]``; repeats
            count, and an item of several values counts for each.
        positions: The number of positions with an item of any value, ``float64[u]``.
    """

    values: tuple[str, ...]
    counts: FloatArray
    positions: FloatArray


def require_items(evidence: Evidence) -> Attributes:
    """Return the items table; raise MissingEvidence if there is none."""
    evidence.need("items")
    return evidence.items  # type: ignore[return-value]  # need() raises on None


def check_attribute(evidence: Evidence, attribute: str) -> None:
    """Check that an item attribute exists and that an item has a value of it.

    Raises:
        UnknownColumn: The items have no such column; ``where`` is ``attribute``.
        NothingLeft: Every cell is missing.
    """
    items = require_items(evidence)
    with at_setting("attribute"):
        if items.column(attribute).isna().all():
            message = f"no item has a value of {attribute!r}"
            raise NothingLeft(message, remedy="choose an attribute that items have")


def count_attribute_values(
    evidence: Evidence, design: Design, attribute: str, *, k: int | None
) -> SlotCounts:
    """Return the number of list positions of each unit by the attribute value of their item."""
    membership = require_items(evidence).membership(attribute)
    matrix = membership.matrix.astype(np.float64)
    known = np.asarray(matrix.sum(axis=1)).ravel() > 0
    items = count_items(evidence, design.queries, design.group.size, k=k)
    warn_missing_attribute(evidence, items, known, attribute)
    counts = (items @ matrix).toarray()
    return SlotCounts(membership.values, counts, items @ known.astype(np.float64))


def count_items(evidence: Evidence, units: AnyArray, n_units: int, *, k: int | None) -> Matrix:
    """Return how often each item occurs in the lists of each unit, CSR ``(u, n_items)``.

    Items outside the catalogue are excluded and counted in a warning.
    """
    from scipy.sparse import coo_array

    items = evidence.ranked.items[:, :k]
    filled = (units >= 0)[:, None] & (items >= 0)
    known = filled & evidence.in_catalogue[:, :k]
    n_unknown = int(np.count_nonzero(filled)) - int(np.count_nonzero(known))
    if n_unknown:
        message = "positions of the lists hold an item outside the catalogue and are excluded"
        warn(f"{evidence.metric}: {n_unknown:,} {message}")
    rows = np.broadcast_to(units[:, None], items.shape)[known]
    shape = (n_units, len(evidence.item_ids))
    return coo_array((np.ones(rows.size), (rows, items[known])), shape=shape).tocsr()


def average_levels(
    evidence: Evidence,
    units: tuple[AnyArray, int],
    levels: FloatArray,
    attribute: str,
    k: int | None,
) -> FloatArray:
    """Return the mean level over the list positions of each unit, ``float64[u]``, or NaN.

    Args:
        evidence: The lists.
        units: The unit of each query, and the number of units.
        levels: The level of each item.
        attribute: The attribute, for the warning of positions without a level.
        k: How many ranks of each list count.
    """
    counts = count_items(evidence, *units, k=k)
    known = ~np.isnan(levels)
    warn_missing_attribute(evidence, counts, known, attribute)
    positions = counts @ known.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray((counts @ np.nan_to_num(levels)) / positions)


def warn_missing_attribute(
    evidence: Evidence, counts: Any, known: BoolArray, attribute: str
) -> None:
    """Warn of the positions whose item has no value of the attribute."""
    n_missing = int((counts @ (~known).astype(np.float64)).sum())
    if n_missing:
        message = f"positions of the lists hold an item without {attribute} and are excluded"
        warn(f"{evidence.metric}: {n_missing:,} {message}")


def read_item_levels(evidence: Evidence, attribute: str) -> FloatArray:
    """Return an attribute as numbers, ``float64[n_items]``; NaN if it is missing.

    A text of one repeated symbol (``$`` to ``$$$$``) becomes the number of symbols.

    Raises:
        UnknownColumn: There is no such column, or it holds neither numbers nor repeated symbols;
            ``where`` is ``attribute``.
        NothingLeft: Every cell is missing.
    """
    check_attribute(evidence, attribute)
    items = require_items(evidence)
    cells = items.column(attribute)
    texts = cells[cells.notna()].astype(str)
    if texts.str.fullmatch(r"([^\w\s.|])\1*").all() and texts.str[0].nunique() == 1:  # noqa: PD101  also of no text
        return np.where(cells.notna(), cells.astype(str).str.len(), np.nan)
    with at_setting("attribute"):
        return items.numbers(attribute)


UnitChoice: TypeAlias = Literal["auto", "name", "template"]
"""The units of the statistics; ``auto`` is the name if each label value has several names."""


def build_design(
    evidence: Evidence, label: str, units: UnitChoice = "auto", words: str | None = None
) -> Design:
    """Return the units that carry a label, in the order of their identifiers.

    Args:
        evidence: The queries.
        label: The label, condition or crossing of several.
        units: The kind of unit.
        words: The column of the words that carry the label. By default it is detected: the column
            with the most words whose words have one label value each; without one, the slots whose
            words determine the label together.

    Raises:
        UnknownColumn: No query carries the label, or there is no column ``words`` or ``template``;
            ``where`` is the setting at fault.
        NothingLeft: The label has one value only.
    """
    design = _build_design(evidence, label, units, words)
    counts = np.bincount(design.group, minlength=len(design.groups.names))
    single = (counts == 1) & (counts.max(initial=0) > 1)
    for name in np.array(design.groups.names, dtype=object)[single].tolist():
        message = f"{name} has one {design.unit} and no variance: no interval, no reliable test"
        warn(f"{evidence.metric}: {message}")
    return design


def _build_design(evidence: Evidence, label: str, units: UnitChoice, words: str | None) -> Design:
    labels = evidence.queries.labels
    groups = group_queries(evidence, label)
    if TEMPLATE not in labels.names:
        return _build_query_design(evidence, groups, units, words)
    template = encode_templates(evidence)
    labelled = (groups.codes >= 0) & (template >= 0)
    warn_unlabelled(evidence, label, int(np.count_nonzero(~labelled & ~mark_neutral(evidence))))
    columns = _choose_word_columns(labels, groups, labelled, words)
    names = encode_words(labels, columns, groups, labelled)
    if units == "auto" and np.unique(template[labelled]).size > 1:
        several_names = _have_several(groups.codes[labelled], names[labelled])
        units = "name" if several_names else "template"
    if units == "template":
        return _build_template_design(labels, groups, np.where(labelled, template, -1))
    return _build_name_design(evidence, groups, names, columns, template)


def find_neutral_templates(evidence: Evidence, design: Design) -> tuple[Ids, AnyArray]:
    """Return the templates of a design that also occur without a word.

    Returns:
        Their names, ``object[t]``, and the index of the template of each neutral query,
        ``int[q]``; -1 for all other queries.
    """
    labels = evidence.queries.labels
    indices = np.full(len(evidence.queries), -1, dtype=np.intp)
    neutral = mark_neutral(evidence)
    if not neutral.any() or TEMPLATE not in labels.names:
        return np.empty(0, dtype=object), indices
    template = encode_templates(evidence)
    rows = neutral & np.isin(template, template[design.queries >= 0])
    names = labels.column(TEMPLATE).astype(str).to_numpy(dtype=object)
    _, first, indices[rows] = np.unique(template[rows], return_index=True, return_inverse=True)
    return names[np.flatnonzero(rows)[first]], indices


def _build_query_design(
    evidence: Evidence, groups: Groups, units: UnitChoice, words: str | None
) -> Design:
    """Return the design of queries without templates: the units are queries, or their words."""
    if units == "template":
        message, remedy = "the queries have no column 'template'", "make them from templates"
        raise UnknownColumn(message, where="units", remedy=remedy)
    warn_unlabelled(evidence, groups.by, groups.missing)
    labelled = groups.codes >= 0
    if words is not None:
        labels = evidence.queries.labels
        columns = _choose_word_columns(labels, groups, labelled, words)
        names = encode_words(labels, columns, groups, labelled)
        return _build_name_design(evidence, groups, names, columns, np.zeros_like(names))
    ids = evidence.queries.ids.ids
    codes, _ = pd.factorize(ids, sort=True)
    design = _build_units(evidence.queries.unit, groups, np.where(labelled, codes, -1))
    return replace(design, ids=ids[_find_first_rows(design)])


def _choose_word_columns(
    labels: Attributes, groups: Groups, labelled: AnyArray, words: str | None
) -> list[str]:
    if words is None:
        columns = find_word_columns(labels, groups, labelled)
        if len(columns) == 1:
            return columns
        return find_slot_columns(labels, groups, labelled) or columns
    with at_setting("words"):
        labels.column(words)
    return [words]


def _build_name_design(
    evidence: Evidence, groups: Groups, names: AnyArray, columns: list[str], template: AnyArray
) -> Design:
    labels = evidence.queries.labels
    design = _build_units("name", groups, names)
    rows = _find_first_rows(design)
    stratum = _encode_strata(design, template)
    design = replace(design, ids=join_words(labels, columns, rows))
    if len(columns) > 1:
        words = encode_unit_words(labels, columns, rows)
        if has_shared_words(words):
            return _build_slot_design(evidence, design, words, one_stratum=not stratum.any())
    if _have_several(stratum, design.group):
        _warn_confounded(evidence, design, stratum)
        return replace(design, stratum=stratum)
    message = "do not all occur in the same templates; the tests treat this as random"
    warn(f"{evidence.metric}: the words that carry {groups.by} {message}")
    return design


def _build_slot_design(
    evidence: Evidence, design: Design, words: AnyArray, *, one_stratum: bool
) -> Design:
    """Return the design of combinations of words that share words."""
    one_cluster = np.zeros_like(design.cluster)
    if one_stratum and is_crossed(words):
        return replace(design, cluster=one_cluster, words=words)
    message = "share words, and not every combination occurs in the same templates"
    remedy = "there is no interval and no test (words: selects the column of independent words)"
    warn(f"{evidence.metric}: the words that carry {design.groups.by} {message}; {remedy}")
    return replace(design, cluster=one_cluster, stratum=design.cluster)


def _warn_confounded(evidence: Evidence, design: Design, stratum: AnyArray) -> None:
    """Warn if the words of the label values are distributed differently over the templates."""
    counts = np.zeros((len(design.groups.names), int(stratum.max(initial=0)) + 1))
    np.add.at(counts, (design.group, stratum), 1.0)
    shares = counts / counts.sum(axis=1, keepdims=True)
    if not np.allclose(shares, shares[:1]):
        reason = "occur in different sentences: their estimates, differences and intervals include"
        tests = (
            "the effect of the wording; the tests do not, they permute within the same templates"
        )
        warn(f"{evidence.metric}: the values of {design.groups.by} {reason} {tests}")


def _build_template_design(labels: Attributes, groups: Groups, template: AnyArray) -> Design:
    n_groups = len(groups.names)
    cells = np.where(template >= 0, template * n_groups + groups.codes, -1)
    design = _build_units(TEMPLATE, groups, cells)
    rows = _find_first_rows(design)
    _, stratum = np.unique(template[rows], return_inverse=True)
    ids = labels.column(TEMPLATE).astype(str).to_numpy(dtype=object)[rows]
    return replace(design, ids=ids, stratum=stratum, cluster=stratum)


def _build_units(unit: str, groups: Groups, codes: AnyArray) -> Design:
    """Return one unit for each code of the queries, in clusters of one and a single stratum."""
    labelled = codes >= 0
    present, dense = np.unique(codes[labelled], return_inverse=True)
    queries = np.full(codes.size, -1, dtype=np.intp)
    queries[labelled] = dense
    group = np.zeros(present.size, dtype=np.intp)
    group[dense] = groups.codes[labelled]
    sentences = np.bincount(dense, minlength=present.size).astype(np.float64)
    cluster = np.arange(present.size)
    ids = present.astype(str).astype(object)
    return Design(unit, groups, ids, queries, group, np.zeros_like(cluster), cluster, sentences)


def _find_first_rows(design: Design) -> AnyArray:
    """Return the first query of each unit, ``int[u]``."""
    return np.unique(design.queries, return_index=True)[1][-design.group.size :]


def _encode_strata(design: Design, template: AnyArray) -> Codes:
    """Return the stratum of each unit: units that occur in the same templates share it."""
    labelled = design.queries >= 0
    occurs = np.zeros((design.group.size, int(template.max(initial=0)) + 1), dtype=bool)
    occurs[design.queries[labelled], template[labelled]] = True
    return np.unique(occurs, axis=0, return_inverse=True)[1].ravel().astype(np.int32)


def _have_several(keys: AnyArray, values: AnyArray) -> bool:
    """Return whether each key that occurs has several values."""
    pairs = np.unique(np.stack([keys, values], axis=1), axis=0)
    counts = np.bincount(pairs[:, 0])
    return bool((counts[counts > 0] > 1).all())
