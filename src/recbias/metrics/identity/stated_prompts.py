"""Prompts that state an identity, each paired with the same prompt without it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from recbias.core.arrays import AnyArray, BoolArray, FloatArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import Contradiction, NothingLeft, UnknownColumn
from recbias.core.outputs.evidence import Evidence
from recbias.core.queries.conditions import match_rows
from recbias.core.queries.groups import Groups, group_by, split_crossing
from recbias.core.queries.queries import SAMPLE, Queries
from recbias.core.stage_context import warn
from recbias.metrics.prompts.query_labels import TEMPLATE, group_queries, locate_errors
from recbias.numerics.list_overlap import INVALID, OverlapForm, measure_overlap

PAIR_COLUMNS = (TEMPLATE, "name")
"""The labels that a prompt shares with its neutral prompt; the first that the queries have."""

REMEDY = "give the queries neutral prompts: neutral: true, or the file of FaiRLLM with neutral"


@dataclass(frozen=True, eq=False)
class StatedPrompts:
    """The prompts that state an identity and have a neutral prompt.

    Args:
        evidence: The evidence, whose queries are these prompts only, with the name of the neutral
            prompt as ``template``.
        groups: The value of the label of each prompt.
        unit: The label that a prompt shares with its neutral prompt.
        names: The name of each neutral prompt, ``object[t]``.
        pairs: The neutral prompt of each prompt, ``int[s]``, from 0.
        rows: The query of each prompt, ``int[s]``.
        neutral: The query of each neutral prompt, ``int[t]``; -1 if a name has none.
        control_rows: The queries that are neutral prompts sampled again, ``int[r]``.
        control_pairs: The neutral prompt of each of them, ``int[r]``.
    """

    evidence: Evidence
    groups: Groups
    unit: str
    names: Ids
    pairs: AnyArray
    rows: AnyArray
    neutral: AnyArray
    control_rows: AnyArray
    control_pairs: AnyArray

    def measure(self, form: OverlapForm, p: float, k: int | None) -> tuple[FloatArray, FloatArray]:
        """Return the overlap with the first sample of the neutral prompt.

        Returns:
            That of each prompt, ``float64[s]``, and that of each further sample, ``float64[r]``.
        """
        items = read_items(self.evidence, k)
        return (
            measure_overlap(items[self.neutral[self.pairs]], items[self.rows], form, p=p),
            measure_overlap(
                items[self.neutral[self.control_pairs]], items[self.control_rows], form, p=p
            ),
        )


def average_groups(values: FloatArray, groups: AnyArray, n_groups: int) -> FloatArray:
    """Return the mean of the defined values of each group, ``float64[g]``; NaN without any."""
    known = ~np.isnan(values)
    totals = np.bincount(groups[known], weights=values[known], minlength=n_groups)
    with np.errstate(invalid="ignore"):
        return np.asarray(totals / np.bincount(groups[known], minlength=n_groups))


def read_items(evidence: Evidence, k: int | None) -> AnyArray:
    """Return the items of the lists; an item outside the catalogue equals no other.

    Without a catalogue all items are outside of it, and are equal if their identifiers are.
    """
    items = evidence.ranked.items
    if len(evidence.item_ids):
        items = np.where(evidence.ranked.filled & ~evidence.in_catalogue, INVALID, items)
    return items[:, :k]


def find_stated_prompts(
    evidence: Evidence, label: str, neutral: str, pair: str | None
) -> StatedPrompts:
    """Return the prompts that state an identity.

    Args:
        evidence: The queries.
        label: The label, condition or crossing of several.
        neutral: The condition that neutral prompts meet.
        pair: The label that a prompt shares with its neutral prompt; None for the first of
            ``template`` and ``name`` that the queries have.

    Raises:
        UnknownColumn: The queries lack a label; ``where`` is the setting at fault.
        NothingLeft: There is no neutral prompt, no prompt with one, or a label has one value only.
        Contradiction: Two neutral prompts have the same ``pair``.
    """
    labels = evidence.queries.labels
    is_neutral = _mark_neutral(labels, neutral)
    unit, pairs = _pair_queries(labels, pair)
    samples = labels.numbers(SAMPLE) if SAMPLE in labels.names else np.zeros(len(evidence.queries))
    neutral_rows = _index_neutral(pairs, np.flatnonzero(is_neutral & (samples == 0)))
    rows = _select_stated(evidence, ~is_neutral & (samples == 0), neutral_rows[pairs.codes] >= 0)
    control_rows = np.flatnonzero(is_neutral & (samples > 0) & (neutral_rows[pairs.codes] >= 0))
    excluded = {*split_crossing(unit)} - {*split_crossing(label)}
    queries = _label_pairs(evidence.queries.take(rows), pairs, rows, excluded)
    stated = replace(evidence, queries=queries)
    return StatedPrompts(
        evidence=stated,
        groups=group_queries(stated, label),
        unit=unit,
        names=np.array(pairs.names, dtype=object),
        pairs=pairs.codes[rows],
        rows=rows,
        neutral=neutral_rows,
        control_rows=control_rows,
        control_pairs=pairs.codes[control_rows],
    )


def _mark_neutral(labels: Attributes, neutral: str) -> BoolArray:
    with locate_errors("neutral"):
        try:
            is_neutral = match_rows(neutral, labels)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, remedy=REMEDY) from error
        if not is_neutral.any():
            raise NothingLeft(f"no query is neutral ({neutral})", remedy=REMEDY)
    return np.asarray(is_neutral)


def _pair_queries(labels: Attributes, pair: str | None) -> tuple[str, Groups]:
    """Return the label that a prompt shares with its neutral prompt, and its values."""
    column = pair or next((name for name in PAIR_COLUMNS if name in labels.names), "")
    with locate_errors("pair"):
        if not column:
            message = f"the queries have no label {' or '.join(map(repr, PAIR_COLUMNS))}"
            raise UnknownColumn(message, remedy="name the label that neutral prompts share")
        return column, group_by(labels, column)


def _index_neutral(pairs: Groups, rows: AnyArray) -> AnyArray:
    """Return the neutral query of each pair, then -1 for queries without the label; -1 is none."""
    rows = rows[pairs.codes[rows] >= 0]
    counts = np.bincount(pairs.codes[rows], minlength=len(pairs.names))
    if (counts > 1).any():
        name = pairs.names[int(counts.argmax())]
        message = f"{counts.max()} neutral prompts have {name}"
        remedy = "name the labels that a prompt shares with one neutral prompt: template & name"
        raise Contradiction(message, where="pair", remedy=remedy)
    neutral = np.full(len(pairs.names) + 1, -1)
    neutral[pairs.codes[rows]] = rows
    return neutral


def _select_stated(evidence: Evidence, is_stated: BoolArray, has_neutral: BoolArray) -> AnyArray:
    """Return the queries that state an identity and have a neutral prompt, ``int[s]``."""
    rows = np.flatnonzero(is_stated & has_neutral)
    if not rows.size:
        message = "no prompt that states an identity has a neutral prompt"
        raise NothingLeft(message, where="pair", remedy=REMEDY)
    n_excluded = int(np.count_nonzero(is_stated & ~has_neutral))
    if n_excluded:
        warn(f"{evidence.metric}: {n_excluded:,} prompts without a neutral prompt are excluded")
    return rows


def _label_pairs(
    queries: Queries, pairs: Groups, rows: AnyArray, excluded: Collection[str]
) -> Queries:
    """Return the queries with the name of their pair as ``template``, without excluded labels."""
    names = np.array(pairs.names, dtype=object)[pairs.codes[rows]]
    frame = queries.labels.frame.reset_index(drop=True).drop(columns=[*excluded], errors="ignore")
    labels = frame.assign(**{TEMPLATE: pd.Series(names)})
    return replace(queries, labels=Attributes(queries.ids, labels, queries.labels.kind))
