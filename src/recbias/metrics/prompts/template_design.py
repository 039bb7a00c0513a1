"""Who carries a label in queries made from templates: the names, or the templates themselves.

A query is a template (a sentence with a slot) filled with words. A label such as race belongs to
the filled name, so one name in eighteen sentences is one fact about that name and not eighteen:
the unit of analysis is the name. Where a label value has one word only (a location), nothing can
be said of words like it; the sentences that it stands in are the units then, and the label values
are compared sentence by sentence. Where the words of several slots carry the label together
(whether two persons are of one gender), pairs share words and are not independent: the words of
each slot are resampled and exchanged by themselves.

``queries.labels`` has the columns ``template``, ``kind``, one column a slot with the filled word,
and one column a label. Without a ``template`` column each query is a unit of its own. Where the
column ``neutral`` is 1 nobody is named: such queries are a reference beside all labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, Codes, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import NothingLeft, UnknownColumn, UserError
from recbias.core.measurements.scores import Measurement
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.groups import Groups, group_by
from recbias.core.stage_context import warn
from recbias.metrics.prompts.filled_words import (
    NEUTRAL,
    TEMPLATE,
    column_codes,
    filled_codes,
    filled_texts,
    word_columns,
)
from recbias.metrics.prompts.label_units import Design
from recbias.metrics.prompts.word_slots import (
    is_crossed,
    share_words,
    slot_columns,
    words_of_units,
)

UnitChoice: TypeAlias = Literal["auto", "name", "template"]
"""What the statistics count; ``auto`` is the name where each label value has several."""


@contextmanager
def blaming(parameter: str) -> Iterator[None]:
    """Say of an error of the user's input which parameter of the metric it is about."""
    try:
        yield
    except UserError as error:
        error.where = parameter
        raise


def labelled(evidence: Evidence, label: str) -> Groups:
    """Return the queries by a label of at least two values.

    Raises:
        UnknownColumn: No query carries the label; ``where`` is ``label``.
        NothingLeft: Every cell is missing, or the label has one value only.
    """
    with blaming("label"):
        groups = group_by(evidence.queries.labels, label)
        if len(groups.names) < 2:
            found = f"the label {label!r} has one value only, {groups.names[0]}"
            raise NothingLeft(found, remedy="name a label that has at least two")
    return groups


def design_of(
    evidence: Evidence, label: str, units: UnitChoice = "auto", words: str | None = None
) -> Design:
    """Return the units that carry a label, in the order of their identifiers.

    Args:
        evidence: Who was asked.
        label: The label, condition or crossing of several.
        units: What they are.
        words: The column of the words that carry the label. By default it is found: the column
            with most words whose words have one label value each; where there is none, the slots
            whose words give the label together.

    Raises:
        UnknownColumn: No query carries the label, or there is no column ``words`` or ``template``;
            ``where`` is the parameter at fault.
        NothingLeft: The label has one value only.
    """
    design = _design(evidence, label, units, words)
    counts = np.bincount(design.group, minlength=len(design.groups.names))
    alone = (counts == 1) & (counts.max(initial=0) > 1)
    for name in np.array(design.groups.names, dtype=object)[alone].tolist():
        lone = f"{name} has one {design.unit}, which has no spread: no interval and no sure test"
        warn(f"{evidence.metric}: {lone}")
    return design


def _design(evidence: Evidence, label: str, units: UnitChoice, words: str | None) -> Design:
    labels = evidence.queries.labels
    groups = labelled(evidence, label)
    if TEMPLATE not in labels.names:
        return _of_queries(evidence, groups, units, words)
    template = template_codes(evidence)
    inside = (groups.codes >= 0) & (template >= 0)
    _say_left_out(evidence, label, int(np.count_nonzero(~inside & ~is_neutral(evidence))))
    columns = _word_columns(labels, groups, inside, words)
    names = filled_codes(labels, columns, groups, inside)
    several = _several_each(groups.codes[inside], names[inside])
    if units == "template" or (units == "auto" and not several and _several(template[inside])):
        return _of_templates(labels, groups, np.where(inside, template, -1))
    return _of_names(evidence, groups, names, columns, template)


def nothing_asked(evidence: Evidence) -> list[Measurement]:
    """Return the one figure, undefined, of a measurement without queries; else none."""
    return [] if len(evidence.queries) else [Measurement(math.nan, n=0, undefined=0)]


def template_codes(evidence: Evidence) -> AnyArray:
    """Return the template of each query, ``int[q]`` from 0; -1 where it is missing."""
    return column_codes(evidence.queries.labels, TEMPLATE)


def is_neutral(evidence: Evidence) -> BoolArray:
    """Return which queries are of a template without any word, ``bool[q]``."""
    labels = evidence.queries.labels
    if NEUTRAL not in labels.names:
        return np.zeros(len(labels.frame), dtype=bool)
    return np.asarray(labels.column(NEUTRAL) == 1)


def neutral_templates(evidence: Evidence, design: Design) -> tuple[Ids, AnyArray]:
    """Return the templates of a design that were asked without any word too.

    Returns:
        Their names, ``object[t]``, and the place of each neutral query among them, ``int[q]``; -1
        for all other queries.
    """
    found = np.full(len(evidence.queries), -1, dtype=np.intp)
    neutral = is_neutral(evidence)
    if not neutral.any() or TEMPLATE not in evidence.queries.labels.names:
        return np.empty(0, dtype=object), found
    template = template_codes(evidence)
    rows = neutral & np.isin(template, template[design.queries >= 0])
    names = evidence.queries.labels.column(TEMPLATE).astype(str).to_numpy(dtype=object)
    _, first, found[rows] = np.unique(template[rows], return_index=True, return_inverse=True)
    return names[np.flatnonzero(rows)[first]], found


def _of_queries(
    evidence: Evidence, groups: Groups, units: UnitChoice, words: str | None
) -> Design:
    """Return the design of queries without templates: each is a unit, or its words are."""
    if units == "template":
        found, remedy = "the queries have no column 'template'", "make them from templates"
        raise UnknownColumn(found, where="units", remedy=remedy)
    _say_left_out(evidence, groups.by, groups.missing)
    inside = groups.codes >= 0
    if words is not None:
        labels = evidence.queries.labels
        columns = _word_columns(labels, groups, inside, words)
        names = filled_codes(labels, columns, groups, inside)
        return _of_names(evidence, groups, names, columns, np.zeros_like(names))
    ids = evidence.queries.ids.ids
    places, _ = pd.factorize(ids, sort=True)
    design = _units(evidence.queries.unit, groups, np.where(inside, places, -1))
    return replace(design, ids=ids[_first_rows(design)])


def _word_columns(
    labels: Attributes, groups: Groups, inside: AnyArray, words: str | None
) -> list[str]:
    if words is None:
        found = word_columns(labels, groups, inside)
        return found if len(found) == 1 else slot_columns(labels, groups, inside) or found
    with blaming("words"):
        labels.column(words)
    return [words]


def _of_names(
    evidence: Evidence, groups: Groups, names: AnyArray, columns: list[str], template: AnyArray
) -> Design:
    design = _units("name", groups, names)
    ids = filled_texts(evidence.queries.labels, columns, _first_rows(design))
    stratum = _strata(design, template)
    design = replace(design, ids=ids)
    if len(columns) > 1:
        words = words_of_units(evidence.queries.labels, columns, _first_rows(design))
        if share_words(words):
            return _of_slots(evidence, design, words, one_stratum=not stratum.any())
    if _several_each(stratum, design.group):
        _say_confounded(evidence, design, stratum)
        return replace(design, stratum=stratum)
    said = "do not all stand in the same templates, which the tests take for chance"
    warn(f"{evidence.metric}: the words that carry {groups.by} {said}")
    return design


def _of_slots(evidence: Evidence, design: Design, words: AnyArray, *, one_stratum: bool) -> Design:
    """Return the design of combinations of words that share words."""
    together = np.zeros_like(design.cluster)
    if one_stratum and is_crossed(words):
        return replace(design, cluster=together, words=words)
    said = "share words, and not every combination stands in the same templates"
    remedy = "there is no interval and no test (words: names the column of independent words)"
    warn(f"{evidence.metric}: the words that carry {design.groups.by} {said}; {remedy}")
    return replace(design, cluster=together, stratum=design.cluster)


def _say_confounded(evidence: Evidence, design: Design, stratum: AnyArray) -> None:
    """Warn where one label value has more of its words in some templates than another has."""
    n = np.zeros((len(design.groups.names), int(stratum.max(initial=0)) + 1))
    np.add.at(n, (design.group, stratum), 1.0)
    shares = n / n.sum(axis=1, keepdims=True)
    if not np.allclose(shares, shares[:1]):
        said = "were asked with different sentences: their figures, differences and intervals hold"
        rest = "the wording too; the tests do not, they exchange labels within the same templates"
        warn(f"{evidence.metric}: the values of {design.groups.by} {said} {rest}")


def _of_templates(labels: Attributes, groups: Groups, template: AnyArray) -> Design:
    n_groups = len(groups.names)
    cells = np.where(template >= 0, template * n_groups + groups.codes, -1)
    design = _units(TEMPLATE, groups, cells)
    rows = _first_rows(design)
    _, stratum = np.unique(template[rows], return_inverse=True)
    ids = labels.column(TEMPLATE).astype(str).to_numpy(dtype=object)[rows]
    return replace(design, ids=ids, stratum=stratum, cluster=stratum)


def _units(unit: str, groups: Groups, codes: AnyArray) -> Design:
    """Return the units of the queries' codes, each by itself and all in one stratum."""
    inside = codes >= 0
    present, dense = np.unique(codes[inside], return_inverse=True)
    queries = np.full(codes.size, -1, dtype=np.intp)
    queries[inside] = dense
    group = np.zeros(present.size, dtype=np.intp)
    group[dense] = groups.codes[inside]
    sentences = np.bincount(dense, minlength=present.size).astype(np.float64)
    places = np.arange(present.size)
    ids = present.astype(str).astype(object)
    return Design(unit, groups, ids, queries, group, np.zeros_like(places), places, sentences)


def _first_rows(design: Design) -> AnyArray:
    """Return the first query of each unit, ``int[u]``."""
    return np.unique(design.queries, return_index=True)[1][-design.group.size :]


def _strata(design: Design, template: AnyArray) -> Codes:
    """Return the stratum of each unit: those that stand in the same templates."""
    inside = design.queries >= 0
    held = np.zeros((design.group.size, int(template.max(initial=0)) + 1), dtype=bool)
    held[design.queries[inside], template[inside]] = True
    return np.unique(held, axis=0, return_inverse=True)[1].ravel().astype(np.int32)


def _several_each(of: AnyArray, values: AnyArray) -> bool:
    """Return whether each of ``of`` that occurs goes with several values."""
    pairs = np.unique(np.stack([of, values], axis=1), axis=0)
    counts = np.bincount(pairs[:, 0])
    return bool((counts[counts > 0] > 1).all())


def _several(codes: AnyArray) -> bool:
    return np.unique(codes).size > 1


def _say_left_out(evidence: Evidence, label: str, n: int) -> None:
    if n:
        warn(f"{evidence.metric}: {n:,} queries carry no {label}, and are left out")
