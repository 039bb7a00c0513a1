"""The units that carry a label in queries from templates: names, or the templates themselves.

A label such as race belongs to the name in the slot, so eighteen sentences with one name are one
observation of that name. If a label value has one word only (a location), the sentences are the
units. If the words of several slots carry the label together (whether two persons have one
gender), the words of each slot are resampled and permuted separately. Without a ``template``
column each query is a unit; queries whose column ``neutral`` is 1 contain no word.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, Codes, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import UnknownColumn
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.groups import Groups
from recbias.core.stage_context import warn
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.query_labels import (
    TEMPLATE,
    encode_templates,
    encode_unit_words,
    encode_words,
    find_slot_columns,
    find_word_columns,
    group_queries,
    has_shared_words,
    is_crossed,
    join_words,
    locate_errors,
    mark_neutral,
    warn_unlabelled,
)

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
    with locate_errors("words"):
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
