"""Which sentences are copies of one another, about two groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import BrokenContract, NothingLeft, UnknownColumn, UnknownIdentifier
from recbias.core.outputs.sentences import SentenceScores
from recbias.core.queries.groups import Groups, group_by, split_crossing
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest


@dataclass(frozen=True, eq=False)
class SentencePairs:
    """The sentences of two groups, and which of them are copies of one another.

    ``rows`` are the rows of the copies, ``int[2, p]``, -1 where there is none; ``sides`` says of
    each sentence whether it is of the first group (0), the second (1) or none (-1).
    """

    names: tuple[str, str]
    ids: AnyArray
    rows: AnyArray
    sides: AnyArray

    def of(self, values: FloatArray) -> FloatArray:
        """Return the value of each copy, ``float64[2, p]``; NaN where there is no copy."""
        return np.where(self.rows >= 0, np.append(values, np.nan)[self.rows], np.nan)


def resolve_groups(scores: SentenceScores, a: str | None, b: str | None) -> tuple[str, str]:
    """Return the two groups to compare: those named, else the two that occur, in natural order.

    Args:
        scores: The sentences.
        a: The first group, or None.
        b: The second, or None.

    Raises:
        UnknownIdentifier: No sentence is of a group named, or more than two occur.
        NothingLeft: Fewer than two occur.
    """
    present = Vocabulary.of(scores.groups).ids.tolist()
    for name, side in (("a", a), ("b", b)):
        if side is not None and side not in present:
            found = f"{name}: no sentence is of the group {side!r}"
            raise UnknownIdentifier(found, remedy=suggest(side, present))
    if a is not None and b is not None:
        return a, b
    if len(present) < 2:
        found = f"the sentences are of {len(present)} group(s), where a gap needs two"
        raise NothingLeft(found, remedy="give each copy of a sentence its group")
    if len(present) > 2:
        found = f"the sentences are of {len(present)} groups: {', '.join(present[:12])}"
        raise UnknownIdentifier(found, remedy="name the two to compare: a: ..., b: ...")
    first = a if a is not None else next(each for each in present if each != b)
    return first, b if b is not None else next(each for each in present if each != first)


def build_pairs(scores: SentenceScores, names: tuple[str, str]) -> SentencePairs:
    """Return the pairs of two groups, in the natural order of their identifiers.

    Args:
        scores: The sentences; those of other groups are left out.
        names: The two groups.

    Raises:
        BrokenContract: A pair has two sentences of one group.
    """
    sides = np.where(scores.groups == names[0], 0, np.where(scores.groups == names[1], 1, -1))
    known = np.flatnonzero((sides >= 0) & np.array([each is not None for each in scores.pairs]))
    pairs, codes = Vocabulary.encode(scores.pairs[known])
    keys = codes.astype(np.int64) * 2 + sides[known]
    twice = np.flatnonzero(np.bincount(keys, minlength=1) > 1)
    if twice.size:
        pair, name = pairs.ids[twice[0] // 2], names[twice[0] % 2]
        raise BrokenContract(f"pair {pair!r} has two sentences of the group {name!r}")
    rows = np.full(2 * len(pairs), -1, dtype=np.int64)
    rows[keys] = known
    return SentencePairs(names, pairs.ids, rows.reshape(-1, 2).T, sides)


def warn_of_missing(metric: str, scores: SentenceScores, pairs: SentencePairs) -> None:
    """Count what is missing in warnings: copies, pairs and perplexities."""
    total, alone = pairs.ids.size, np.flatnonzero((pairs.rows < 0).any(axis=0))
    if alone.size:
        first = pairs.ids[alone[0]]
        warn(f"{metric}: {alone.size:,} of {total:,} pairs lack a copy, the first is {first!r}")
    unpaired = (pairs.sides >= 0) & np.array([each is None for each in scores.pairs], dtype=bool)
    if unpaired.any():
        warn(f"{metric}: {int(unpaired.sum()):,} sentences are of no pair")
    unknown = np.flatnonzero((pairs.sides >= 0) & np.isnan(scores.perplexity))
    if unknown.size:
        first = scores.ids[unknown[0]]
        warn(f"{metric}: {unknown.size:,} sentences have no perplexity, the first is {first!r}")


def group_sentences(scores: SentenceScores, by: str, metric: str) -> Groups:
    """Return the group of each sentence by its labels.

    Raises:
        UnknownColumn: The sentences have no such column.
        NothingLeft: No sentence has the label.
    """
    names = [str(name) for name in scores.labels.columns]
    for part in split_crossing(by):
        if part.isidentifier() and part not in names:
            found = f"the sentences have no column {part!r}"
            raise UnknownColumn(found, remedy=suggest(part, names))
    groups = group_by(Attributes(Vocabulary(scores.ids), scores.labels, "sentence"), by)
    if groups.missing:
        warn(f"{metric}: {groups.missing:,} sentences have no label {by!r}")
    return groups


def split_pairs(pairs: SentencePairs, groups: Groups) -> Iterator[tuple[SentencePairs, str]]:
    """Yield the pairs of each group, and its name.

    Raises:
        BrokenContract: The copies of a pair are in different groups.
    """
    codes = np.where(pairs.rows >= 0, groups.codes[pairs.rows], -1)
    parted = np.flatnonzero((codes[0] != codes[1]) & (pairs.rows >= 0).all(axis=0))
    if parted.size:
        found = f"the copies of pair {pairs.ids[parted[0]]!r} differ in {groups.by!r}"
        raise BrokenContract(found, remedy="take a label that both copies of a sentence share")
    for place, name in enumerate(groups.names):
        own = codes.max(axis=0, initial=-1) == place
        sides = np.where(groups.codes == place, pairs.sides, -1)
        yield replace(pairs, ids=pairs.ids[own], rows=pairs.rows[:, own], sides=sides), name
