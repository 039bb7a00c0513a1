"""Pairs of sentences that differ only in the group they mention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray, Ids
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import BrokenContract, NothingLeft, UnknownColumn, UnknownIdentifier
from recbias.core.outputs.text_outputs import Responses, SentenceScores
from recbias.core.queries.groups import Groups, group_by, split_crossing
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest


@dataclass(frozen=True, eq=False)
class SentencePairs:
    """The sentences of two groups, and which of them are copies of each other.

    Args:
        names: The two groups.
        ids: The identifiers of the p pairs.
        rows: The rows of the copies in the table of sentences, ``int[2, p]``; -1 where a copy is
            missing.
        sides: The group of each sentence: 0 for the first, 1 for the second, -1 for any other.
    """

    names: tuple[str, str]
    ids: AnyArray
    rows: AnyArray
    sides: AnyArray

    def of(self, values: FloatArray) -> FloatArray:
        """Return the value of each copy, ``float64[2, p]``; NaN where a copy is missing."""
        return np.where(self.rows >= 0, np.append(values, np.nan)[self.rows], np.nan)


def resolve_groups(scores: SentenceScores, a: str | None, b: str | None) -> tuple[str, str]:
    """Return the two groups to compare: those named, or the two that occur in natural order.

    Raises:
        UnknownIdentifier: No sentence has a named group, or more than two groups occur.
        NothingLeft: Fewer than two groups occur.
    """
    present = [group for group in Vocabulary.of(scores.groups).ids.tolist() if group]
    for name, side in (("a", a), ("b", b)):
        if side is not None and side not in present:
            message = f"{name}: no sentence is of the group {side!r}"
            raise UnknownIdentifier(message, remedy=suggest(side, present))
    if a is not None and b is not None:
        return a, b
    if len(present) < 2:
        message = f"the sentences are of {len(present)} group(s), where a gap needs two"
        raise NothingLeft(message, remedy="set the group of each copy of a sentence")
    if len(present) > 2:
        message = f"the sentences are of {len(present)} groups: {', '.join(present[:12])}"
        remedy = (
            "name the two groups to compare: a: ..., b: ..., or a group_label: with two values"
        )
        raise UnknownIdentifier(message, remedy=remedy)
    first = a if a is not None else next(group for group in present if group != b)
    return first, b if b is not None else next(group for group in present if group != first)


def read_sides(scores: SentenceScores, label: str) -> Ids:
    """Return a label of the sentences as text, "" where it is missing.

    Raises:
        UnknownColumn: The sentences have no such column.
    """
    names = [str(name) for name in scores.labels.columns]
    if label not in names:
        message = f"the sentences have no column {label!r}"
        raise UnknownColumn(message, where="group_label", remedy=suggest(label, names))
    column = scores.labels[label]
    return column.astype(object).where(column.notna(), "").map(str).to_numpy(dtype=object)


def build_pairs(scores: SentenceScores, names: tuple[str, str]) -> SentencePairs:
    """Return the pairs of two groups, in the natural order of their identifiers.

    Raises:
        BrokenContract: A pair has two sentences of one group.
    """
    sides = np.where(scores.groups == names[0], 0, np.where(scores.groups == names[1], 1, -1))
    has_pair = np.array([pair_id is not None for pair_id in scores.pairs], dtype=bool)
    paired = np.flatnonzero((sides >= 0) & has_pair)
    pairs, codes = Vocabulary.encode(scores.pairs[paired])
    keys = codes.astype(np.int64) * 2 + sides[paired]
    duplicates = np.flatnonzero(np.bincount(keys, minlength=1) > 1)
    if duplicates.size:
        pair, name = pairs.ids[duplicates[0] // 2], names[duplicates[0] % 2]
        raise BrokenContract(f"pair {pair!r} has two sentences of the group {name!r}")
    rows = np.full(2 * len(pairs), -1, dtype=np.int64)
    rows[keys] = paired
    return SentencePairs(names, pairs.ids, rows.reshape(-1, 2).T, sides)


def warn_of_missing(metric: str, scores: SentenceScores, pairs: SentencePairs) -> None:
    """Warn about missing copies, pairs and perplexities, with the number of each."""
    total, incomplete = pairs.ids.size, np.flatnonzero((pairs.rows < 0).any(axis=0))
    if incomplete.size:
        first = pairs.ids[incomplete[0]]
        warn(
            f"{metric}: {incomplete.size:,} of {total:,} pairs lack a copy, the first is {first!r}"
        )
    has_no_pair = np.array([pair_id is None for pair_id in scores.pairs], dtype=bool)
    unpaired = (pairs.sides >= 0) & has_no_pair
    if unpaired.any():
        warn(f"{metric}: {int(unpaired.sum()):,} sentences are of no pair")
    unknown = np.flatnonzero((pairs.sides >= 0) & np.isnan(scores.perplexity))
    if unknown.size:
        first = scores.ids[unknown[0]]
        warn(f"{metric}: {unknown.size:,} sentences have no perplexity, the first is {first!r}")


def require_label(
    by: str | None, names: Sequence[str], noun: str = "sentence", where: str = ""
) -> None:
    """Raise UnknownColumn unless sentences or responses have a label, or those of a crossing."""
    for label in split_crossing(by) if by is not None else ():
        if label.isidentifier() and label not in names:
            message = f"the {noun}s have no column {label!r}"
            remedy = suggest(label, names) if names else f"give their table a column {label!r}"
            raise UnknownColumn(message, where=where, remedy=remedy)


def group_sentences(
    scored: SentenceScores | Responses, by: str, metric: str, noun: str = "sentence"
) -> Groups:
    """Return the group of each sentence or response by a label, or a crossing of labels.

    Raises:
        UnknownColumn: They have no such column.
        NothingLeft: None has the label.
    """
    require_label(by, [str(name) for name in scored.labels.columns], noun)
    groups = group_by(Attributes(Vocabulary(scored.ids), scored.labels, noun), by)
    if groups.missing:
        warn(f"{metric}: {groups.missing:,} {noun}s have no label {by!r}")
    return groups


def split_pairs(pairs: SentencePairs, groups: Groups) -> Iterator[tuple[SentencePairs, str]]:
    """Yield the pairs of each group and the name of the group.

    Raises:
        BrokenContract: The copies of a pair are in different groups.
    """
    codes = np.where(pairs.rows >= 0, groups.codes[pairs.rows], -1)
    mixed = np.flatnonzero((codes[0] != codes[1]) & (pairs.rows >= 0).all(axis=0))
    if mixed.size:
        message = f"the copies of pair {pairs.ids[mixed[0]]!r} differ in {groups.by!r}"
        raise BrokenContract(message, remedy="use a label that both copies of a sentence share")
    for code, name in enumerate(groups.names):
        in_group = codes.max(axis=0, initial=-1) == code
        sides = np.where(groups.codes == code, pairs.sides, -1)
        ids, rows = pairs.ids[in_group], pairs.rows[:, in_group]
        yield replace(pairs, ids=ids, rows=rows, sides=sides), name
