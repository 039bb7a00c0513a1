"""CHBias: Chinese sentences about two groups, in four categories of bias."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.dataset.dataset import Dataset
from recbias.data.datasets.dataset_folder import find_folder, require_files
from recbias.data.sentences.sentence_sets import (
    Overlap,
    make_dataset,
    make_pairs,
    make_train,
    read_sentences,
    require_equal_numbers,
)
from recbias.formats.tables import read_text_table

NAME = "chbias"
GROUPS = {
    "gender": ("female", "male"),
    "orientation": ("lgbt", "straight"),
    "age": ("old", "young"),
    "appearance": ("fat", "slim"),
}
"""The groups of each category; the stereotypes are about the first."""

PARTS = {"validation": "valid", "test": "test"}
"""The name of each part in the names of the files."""

Dimension: TypeAlias = Literal["all", "gender", "orientation", "age", "appearance"]
"""A category of bias, or all four."""


@dataclass(frozen=True, kw_only=True)
class CHBias:
    """CHBias: offensive Chinese posts about a group, and copies that name another group.

    Each category has 800 training sentences about the first group (799 in age and appearance), and
    200 validation and 200 test pairs: line i of the files of both groups. Labels are ``category``
    and ``target_set``: T1 for the first group (female, lgbt, old, fat), T2 for the second (male,
    straight, young, slim). The sentences are offensive.

    Pairs with the same text for both groups are kept, counted and warned about, and so are
    sentences of validation and test that are also training sentences.

    Args:
        dimension: The category, or all four.
        train: ``plain`` are the collected sentences; ``CADA`` and ``CTDA`` are the augmented ones
            as the authors released them, with copies in which attribute or target terms are
            replaced. They have no group.
        form: The files of the test pairs, which are released twice: ``txt``, or ``csv`` with the
            column ``replaced_sentence``. The sentences are the same.
        overlap: ``drop`` excludes training sentences that are also in validation or test.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch chbias`` downloads it.
        MalformedLine: A line is empty or not UTF-8, or the files of a pair differ in length.

    Source:
        Zhao, Fang, Shi, Li, Chen and Pechenizkiy, "CHBias: Bias Evaluation and Mitigation of
        Chinese Conversational Language Models", ACL 2023.
    """

    dimension: Dimension = "all"
    train: Literal["plain", "CADA", "CTDA"] = "plain"
    form: Literal["txt", "csv"] = "txt"
    overlap: Overlap = "keep"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"sentences"})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        files = [
            path
            for category in self._categories
            for path in (
                self._find_train(data, category),
                *(path for part in PARTS for path in self._find_pairs(data, category, part)),
            )
        ]
        return require_files(files, fetch=NAME)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        self.files(data)
        frames = [frame for category in self._categories for frame in self._read(data, category)]
        return make_dataset(pd.concat(frames, ignore_index=True), NAME, self.overlap)

    @property
    def _categories(self) -> tuple[str, ...]:
        return tuple(GROUPS) if self.dimension == "all" else (self.dimension,)

    def _find_train(self, data: Path, category: str) -> Path:
        suffix = "" if self.train == "plain" else f"_{self.train.lower()}"
        return _find_category(data, category) / f"{category}_train{suffix}.txt"

    def _find_pairs(self, data: Path, category: str, part: str) -> tuple[Path, Path]:
        form = self.form if part == "test" else "txt"
        folder = _find_category(data, category)
        names = [f"{category}_{group}_{PARTS[part]}.{form}" for group in GROUPS[category]]
        return folder / names[0], folder / names[1]

    def _read(self, data: Path, category: str) -> Iterator[pd.DataFrame]:
        groups = GROUPS[category]
        texts = read_sentences(self._find_train(data, category))
        yield make_train(texts, groups[0] if self.train == "plain" else None, category)
        for part in PARTS:
            paths = self._find_pairs(data, category, part)
            copies = _read_copies(paths[0]), _read_copies(paths[1])
            require_equal_numbers(paths, copies)
            yield make_pairs(copies, groups, part=part, category=category)


def _find_category(data: Path, category: str) -> Path:
    """Return the folder of a category, in the layout of the authors' repository or without it."""
    holds = f"{category}/{category}_train.txt"
    return find_folder(NAME, data, holds=holds, inner="data") / category


def _read_copies(path: Path) -> list[str]:
    if path.suffix == ".txt":
        return read_sentences(path)
    table = read_text_table(path)
    table.need("replaced_sentence")
    return [str(text).strip() for text in table.ids("replaced_sentence")]
