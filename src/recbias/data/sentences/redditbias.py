"""RedditBias: English phrases about two groups, in five categories of bias."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from recbias.core.dataset.dataset import Dataset
from recbias.core.protocols import InputFile
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
from recbias.formats.text_files import require_file

NAME = "redditbias"
GROUPS = {
    "gender": ("female", "male"),
    "orientation": ("lgbtq", "straight"),
    "race": ("black", "white"),
    "religion1": ("jews", "christians"),
    "religion2": ("muslims", "christians"),
}
"""The groups of each category; the stereotypes are about the first."""

PARTS = {"validation": "valid", "test": "test"}
"""The name of each part in the names of the files."""

COLUMN = "comments_processed"
"""The column of the sentences."""

Dimension: TypeAlias = Literal["all", "gender", "orientation", "race", "religion1", "religion2"]
"""A category of bias, or all five."""


@dataclass(frozen=True, kw_only=True)
class RedditBias:
    """RedditBias: offensive English phrases of Reddit, and copies that name another group.

    The validation and test pairs are the rows of ``reddit_comments_<category>_<group>_biased_
    valid_reduced.csv`` and ``..._test_reduced.csv``, which hold the pairs without outliers; row i
    of the files of both groups is a pair. Labels are ``category`` and ``target_set``: T1 for the
    first group (female, lgbtq, black, jews, muslims), T2 for the second. The sentences are
    offensive.

    Args:
        dimension: The category, or all five; ``religion1`` and ``religion2`` have Christians as
            second group.
        train: Your own file of training sentences, one per line: the release has none that are
            ready to use. They have no group and no category.
        overlap: ``drop`` excludes training sentences that are also in validation or test.

    Raises:
        MissingFile: A file is missing; ``recbias data fetch redditbias`` downloads it.
        UnknownColumn: A file has no column ``comments_processed``.
        MalformedLine: A cell is empty, or the files of a pair differ in length.

    Source:
        Barikeri, Lauscher, Vulić and Glavaš, "RedditBias: A Real-World Resource for Bias
        Evaluation and Debiasing of Conversational Language Models", ACL 2021.
    """

    dimension: Dimension = "all"
    train: InputFile | None = None
    overlap: Overlap = "keep"

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"sentences"})

    def files(self, data: Path) -> list[Path]:
        """Return the files that ``load`` reads."""
        pairs = [
            path
            for category in self._categories
            for part in PARTS
            for path in _find_pairs(data, category, part)
        ]
        own = [] if self.train is None else [require_file(self.train)]
        return [*own, *require_files(pairs, fetch=NAME)]

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the files."""
        self.files(data)
        frames = []
        if self.train is not None:
            frames.append(make_train(read_sentences(self.train), None, None))
        for category in self._categories:
            for part in PARTS:
                paths = _find_pairs(data, category, part)
                texts = _read_column(paths[0]), _read_column(paths[1])
                require_equal_numbers(paths, texts)
                frames.append(make_pairs(texts, GROUPS[category], part=part, category=category))
        return make_dataset(pd.concat(frames, ignore_index=True), NAME, self.overlap)

    @property
    def _categories(self) -> tuple[str, ...]:
        return tuple(GROUPS) if self.dimension == "all" else (self.dimension,)


def _find_pairs(data: Path, category: str, part: str) -> tuple[Path, Path]:
    """Return the files of both groups, in the layout of the authors' repository or without it."""
    names = [
        f"{category}/reddit_comments_{category}_{group}_biased_{PARTS[part]}_reduced.csv"
        for group in GROUPS[category]
    ]
    folder = find_folder(NAME, data, holds=names[0], inner="data")
    return folder / names[0], folder / names[1]


def _read_column(path: Path) -> list[str]:
    table = read_text_table(path)
    table.need(COLUMN)
    return [str(text).strip() for text in table.ids(COLUMN)]
