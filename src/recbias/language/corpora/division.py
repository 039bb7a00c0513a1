"""Division of sentences into training, validation and test, with copies about the other group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from recbias.core.dataset.sentences import SENTENCE_PARTS
from recbias.core.errors import NothingLeft, OutOfRange
from recbias.language.terms.term_files import select_category
from recbias.language.terms.term_pairs import TermPairs

Row: TypeAlias = dict[str, str]
"""The columns of a sentence."""

Swap: TypeAlias = Literal["targets", "attributes"]
"""The terms that are replaced in a copy."""

TARGET_SETS = ("T1", "T2")
"""The label of a sentence about the first group, and of its copy about the second."""


@dataclass(frozen=True, eq=False)
class Division:
    """The rows of each part, and what was counted.

    Args:
        parts: The rows by part: ``train``, ``validation`` and ``test``.
        identical: Pairs whose copy is the same text, because no target term was replaced.
        unused: Sentences beyond the sizes.
    """

    parts: Mapping[str, list[Row]]
    identical: int
    unused: int


def divide_sentences(
    rows: Sequence[Row],
    terms: Mapping[str, TermPairs],
    sizes: tuple[int, int, int],
    rng: np.random.Generator,
    *,
    both_directions: bool = False,
) -> Division:
    """Divide the sentences of each category at random, and add swapped copies to two parts.

    Training sentences stay as they are. Each sentence of validation and test becomes a pair: the
    sentence, and its copy in which target terms are replaced by those of the second group. A
    sentence that occurs twice is used once, so that no part has a sentence of another.

    Args:
        rows: Records with ``id``, ``text`` and ``category``.
        terms: The terms of each category.
        sizes: The number of sentences of each category in train, validation and test.
        rng: The generator of the division.
        both_directions: Whether terms of the second group are also replaced.

    Raises:
        UnknownName: There are no terms of a category.
        NothingLeft: No sentence of a category has a target term.
        OutOfRange: A category has too few sentences.
    """
    parts: dict[str, list[Row]] = {part: [] for part in SENTENCE_PARTS}
    identical = unused = 0
    for category in dict.fromkeys(row["category"] for row in rows):
        pairs = select_category(terms, category)
        unique = {row["text"]: row for row in reversed(rows) if row["category"] == category}
        pairs.require_targets(unique)
        if len(unique) < sum(sizes):
            message = (
                f"{category} has {len(unique):,} different sentences, "
                f"fewer than {' + '.join(f'{size:,}' for size in sizes)}"
            )
            remedy = "collect more sentences, or give smaller sizes: --train, --validation, --test"
            raise OutOfRange(message, where="sizes", remedy=remedy)
        ordered = [*unique.values()][::-1]
        shuffled = [ordered[position] for position in rng.permutation(len(ordered))]
        unused += len(shuffled) - sum(sizes)
        start = 0
        for part, size in zip(SENTENCE_PARTS, sizes, strict=True):
            chosen, start = shuffled[start : start + size], start + size
            if part == "train":
                parts[part] += [{**row, "group": pairs.groups[0]} for row in chosen]
                continue
            for row in chosen:
                copies = _make_pair(row, pairs, both_directions=both_directions)
                identical += copies[0]["text"] == copies[1]["text"]
                parts[part] += copies
    return Division(parts, identical, unused)


def swap_sentences(
    rows: Sequence[Row],
    terms: Mapping[str, TermPairs],
    swap: Swap = "targets",
    *,
    both_directions: bool = False,
) -> list[Row]:
    """Return each sentence followed by its copy with swapped terms, as pairs.

    Args:
        rows: Records with ``id``, ``text`` and ``category``.
        terms: The terms of each category.
        swap: ``targets`` names the other group: the groups are those of the terms. ``attributes``
            replaces attribute terms by their counterparts: the groups are A1 and A2.
        both_directions: Whether the terms of the second group are also replaced.

    Raises:
        UnknownName: There are no terms of a category.
        NothingLeft: No copy differs, as with terms of another language.
    """
    copies = []
    for row in rows:
        pairs = select_category(terms, row["category"])
        copies += _make_pair(row, pairs, swap, both_directions=both_directions)
    if all(a["text"] == b["text"] for a, b in zip(copies[::2], copies[1::2], strict=True)):
        message = f"none of the {len(rows):,} sentences has one of the {swap} of its category"
        raise NothingLeft(message, where="terms", remedy="use terms in their language and script")
    return copies


def _make_pair(
    row: Row, pairs: TermPairs, swap: Swap = "targets", *, both_directions: bool
) -> list[Row]:
    replace_terms = pairs.swap_targets if swap == "targets" else pairs.swap_attributes
    texts = row["text"], replace_terms(row["text"], both_directions=both_directions)
    groups = pairs.groups if swap == "targets" else ("A1", "A2")
    sides = zip(groups, TARGET_SETS if swap == "targets" else groups, texts, strict=True)
    return [
        {
            **row,
            "id": f"{row['id']}-{group}",
            "pair_id": row["id"],
            "group": group,
            "target_set": target_set,
            "text": text,
        }
        for group, target_set, text in sides
    ]
