"""CrowS-Pairs: English sentences with and without a stereotype, in nine categories of bias."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.sentences import KEYS
from recbias.core.errors import MalformedLine
from recbias.data.datasets.dataset_folder import find_folder, require_files
from recbias.data.sentences.sentence_sets import TARGET_SETS, make_dataset
from recbias.formats.tables import read_text_table

NAME = "crows_pairs"
FILE = "crows_pairs_anonymized.csv"
GROUPS = ("sent_more", "sent_less")
"""The columns of a pair, the more stereotypical sentence first."""

DIRECTION = "stereo_antistereo"
"""The column with ``stereo`` where the more stereotypical sentence is about the disadvantaged
group, ``antistereo`` where the less stereotypical one is."""


@dataclass(frozen=True, kw_only=True)
class CrowSPairs:
    """CrowS-Pairs: 1,508 pairs of sentences, of which one is more stereotypical.

    All pairs are in the test part. The groups are ``sent_more`` and ``sent_less``, the columns of
    the published file: the more and the less stereotypical sentence of a pair. Labels are
    ``category`` (the column ``bias_type``: gender, race-color, age, ...), ``stereo_antistereo``,
    and ``target_set``: T1 for the sentence about the disadvantaged group (``sent_more`` where
    ``stereo_antistereo`` is ``stereo``, ``sent_less`` where it is ``antistereo``), T2 for the
    other. The sentences are offensive.

    Raises:
        MissingFile: The file is missing; ``recbias data fetch crows_pairs`` downloads it.
        UnknownColumn: A column is missing.
        MalformedLine: A sentence is empty, or ``stereo_antistereo`` has another value.

    Source:
        Nangia, Vania, Bhalerao and Bowman, "CrowS-Pairs: A Challenge Dataset for Measuring Social
        Biases in Masked Language Models", EMNLP 2020.
    """

    def gives(self) -> frozenset[str]:
        """Return the parts that ``load`` reads."""
        return frozenset({"sentences"})

    def files(self, data: Path) -> list[Path]:
        """Return the file that ``load`` reads."""
        folder = find_folder(NAME, data, holds=FILE, inner="biasmeter")
        return require_files([folder / FILE], fetch=NAME)

    def load(self, data: Path, rng: np.random.Generator) -> Dataset:
        """Read the file."""
        table = read_text_table(self.files(data)[0])
        table.need(*GROUPS, "bias_type", DIRECTION)
        columns = [table.ids(name) for name in (*GROUPS, "bias_type", DIRECTION)]
        rows = []
        for row, (more, less, category, direction) in enumerate(zip(*columns, strict=True)):
            if direction not in {"stereo", "antistereo"}:
                message = f"{DIRECTION} is {direction!r}"
                remedy = "write stereo or antistereo"
                raise MalformedLine(message, where=table.place(row), remedy=remedy)
            sets = TARGET_SETS if direction == "stereo" else TARGET_SETS[::-1]
            pair = f"{category}-{row + 1}"
            rows += [
                (f"{pair}-{group}", "test", pair, group, text.strip(), category, target, direction)
                for group, text, target in zip(GROUPS, (more, less), sets, strict=True)
            ]
        names = [*KEYS, "category", "target_set", DIRECTION]
        return make_dataset(pd.DataFrame(rows, columns=names, dtype=object), NAME)
