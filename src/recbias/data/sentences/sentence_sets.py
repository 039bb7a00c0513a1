"""The dataset of a table of sentences, with counts of identical pairs and repeated sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.interactions import Interactions
from recbias.core.dataset.sentences import KEYS, Sentences
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MalformedLine, NothingLeft
from recbias.core.stage_context import warn
from recbias.formats.text_files import read_text

Overlap: TypeAlias = Literal["keep", "drop"]
"""Whether training sentences that are also in another part are used."""

TARGET_SETS = ("T1", "T2")
"""The label of the first group of a pair, which the stereotypes are about, and of the second."""

EVALUATION_PARTS = ("validation", "test")


def make_dataset(frame: pd.DataFrame, name: str, overlap: Overlap = "keep") -> Dataset:
    """Return a dataset that has nothing but sentences.

    Pairs of identical sentences, and sentences of the validation and test parts that are also
    training sentences, are counted and warned about.

    Args:
        frame: The columns of ``Sentences``.
        name: The name of the dataset, for warnings.
        overlap: ``drop`` excludes the training sentences that are also in another part.
    """
    counts = {part: int((frame["part"] == part).sum()) for part in ("train", *EVALUATION_PARTS)}
    for part in EVALUATION_PARTS:
        counts |= _count_identical(frame, part, name)
    is_train = (frame["part"] == "train").to_numpy()
    trained = set(frame.loc[is_train, "text"])
    for part in EVALUATION_PARTS:
        texts = frame.loc[frame["part"] == part, "text"]
        counts[f"{part}_in_train"] = n_repeated = int(texts.isin(trained).sum())
        if n_repeated:
            verb = "were" if overlap == "drop" else "are"
            warn(f"{name}: {n_repeated:,} {part} sentences {verb} also training sentences")
    if overlap == "drop":
        is_repeated = is_train & frame["text"].isin(set(frame.loc[~is_train, "text"])).to_numpy()
        counts["dropped_from_train"] = int(is_repeated.sum())
        frame = frame[~is_repeated].reset_index(drop=True)
    return Dataset(_make_no_interactions(), sentences=Sentences(frame), counts=counts)


def _count_identical(frame: pd.DataFrame, part: str, name: str) -> dict[str, int]:
    rows = frame[(frame["part"] == part) & frame["pair_id"].notna()]
    pairs = rows.groupby("pair_id", sort=False)["text"].agg(["size", "nunique"])
    n_identical = int(((pairs["size"] > 1) & (pairs["nunique"] == 1)).sum())
    if n_identical:
        warn(
            f"{name}: {n_identical:,} of {len(pairs):,} {part} pairs have the same text for both "
            "groups; their difference is 0 under any model"
        )
    return {f"{part}_pairs": len(pairs), f"identical_{part}_pairs": n_identical}


def _make_no_interactions() -> Interactions:
    codes, ids = np.empty(0, dtype=np.int32), Vocabulary.of([])
    return Interactions(codes, codes.copy(), np.empty(0, np.float32), None, ids, ids)


def make_pairs(
    texts: tuple[Sequence[str], Sequence[str]],
    groups: tuple[str, str],
    *,
    part: str,
    category: str,
    prefix: str = "",
) -> pd.DataFrame:
    """Return the sentences of pairs, pair by pair; the pair of line i is ``category-part-i``.

    >>> make_pairs((["A"], ["B"]), ("old", "young"), part="test", category="age")["id"].tolist()
    ['age-test-1-old', 'age-test-1-young']
    """
    rows = [
        (f"{pair}-{group}", part, pair, group, text, category, target_set)
        for number, pair_texts in enumerate(zip(*texts, strict=True), start=1)
        for pair in [f"{prefix}{category}-{part}-{number}"]
        for group, text, target_set in zip(groups, pair_texts, TARGET_SETS, strict=True)
    ]
    return _make_frame(rows)


def make_train(texts: Sequence[str], group: str | None, category: str | None) -> pd.DataFrame:
    """Return training sentences, which have no counterpart; ``group`` may be unknown."""
    target_set = None if group is None else TARGET_SETS[0]
    rows = [
        (f"{category or 'sentences'}-train-{number}", "train", None, group, text, *labels)
        for labels in [(category, target_set)]
        for number, text in enumerate(texts, start=1)
    ]
    return _make_frame(rows)


def _make_frame(rows: Sequence[tuple[str | None, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[*KEYS, "category", "target_set"], dtype=object)


def read_sentences(path: Path) -> list[str]:
    """Return the sentences of a text file with one per line, without white space at the ends.

    Raises:
        MissingFile: The file does not exist.
        MalformedLine: A line before the last sentence is empty, or the file is not UTF-8.
        NothingLeft: There is no sentence.
    """
    lines = [line.strip() for line in read_text(path).decode().split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise NothingLeft(
            "has no sentences", where=str(path), remedy="write one sentence per line"
        )
    if "" in lines:
        remedy = "write one sentence per line, and no empty line between two"
        raise MalformedLine("an empty line", where=f"{path}:{lines.index('') + 1}", remedy=remedy)
    return lines


def require_equal_numbers(
    paths: tuple[Path, Path], texts: tuple[Sequence[str], Sequence[str]]
) -> None:
    """Raise MalformedLine if two files, of which line i is a pair, differ in length."""
    sizes = [len(part) for part in texts]
    if sizes[0] != sizes[1]:
        longer, shorter = (paths[i] for i in ((0, 1) if sizes[0] > sizes[1] else (1, 0)))
        message = f"has {max(sizes):,} sentences, but {shorter.name} has {min(sizes):,}"
        remedy = "sentence i of both files is a pair: add or remove the sentence of one file"
        where = f"{longer}:{min(sizes) + 1}"
        raise MalformedLine(message, where=where, remedy=remedy)
