"""Labels from scores of an item's sentences, combined by the Stanford certainty factor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Interval

from recbias.core.arrays import FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import MalformedLine, UnknownIdentifier
from recbias.core.protocols import InputFile
from recbias.core.stage_context import warn
from recbias.formats.tables import read_text_table
from recbias.numerics.certainty_factor import certainty_factor

_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """Label items by the scores of their sentences, from any model that scores sentences.

        x and y together:  x + y - x y  (both ≥ 0),  x + y + x y  (both ≤ 0),
                           (x + y) / (1 - min(|x|, |y|))  (opposite signs)
        label = 1 if the scores of all sentences together > threshold else 0

    The file (CSV, TSV or JSON lines, also with ``.gz``, or Parquet) has one row per sentence:
    ``item_id``, ``score`` from -1 (against the stereotype) to 1 (a stereotype) and, if there are
    several stereotypes, ``kind`` (gender, race, ...); other columns are ignored. The order of the
    rows does not matter. The rule is 0/0 for a sentence of exactly 1 and one of exactly -1: their
    combined score is 0 here, whatever the others are. Beside the label of each kind there is its
    grade, ``gender_score``: the combined score, 0 if it is negative. Rows of items that the
    dataset lacks are excluded; they and items without a sentence are counted in a warning.

    Args:
        path: The file.
        threshold: The combined score from which an item is labelled.
        strict: Label above the threshold only, not at it. Scores closer than 1e-12 are at it.
        kind: What the scores describe if the file has no column ``kind``.
        missing: The label of an item without a sentence: ``zero`` as in the paper, or
            ``undefined``.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: A column is missing.
        WrongType: The file is of another type.
        MalformedLine: A line does not fit, a score is not a number from -1 to 1, or a cell is
            empty.
        UnknownIdentifier: None of its items is in the dataset.

    Source:
        Al Nahadi, "Exploring children's exposure to stereotypes via recommender systems", MSc
        thesis, TU Delft 2023, section 3.3.2; Shortliffe and Buchanan, "A model of inexact
        reasoning in medicine", Mathematical Biosciences 1975.
    """

    libraries: ClassVar[tuple[str, ...]] = ()

    path: InputFile
    threshold: Annotated[float, Interval(ge=-1, le=1)] = 0.7
    strict: bool = True
    kind: str = "stereotype"
    missing: Literal["zero", "undefined"] = "zero"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds in the file, sorted."""
        return tuple(sorted(set(read_scores(self.path, self.kind)["kind"])))

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and grades of each kind; ``rng`` is unused."""
        table = read_scores(self.path, self.kind)
        codes = items.ids.find(table["item_id"].to_numpy(dtype=object))
        in_dataset = codes >= 0
        if not in_dataset.any():
            message = f"none of the items of {self.path.name} is in the dataset"
            remedy = f"use the ids of the dataset: {items.ids.ids[0]!r}" if len(items.ids) else ""
            raise UnknownIdentifier(message, where="path", remedy=remedy)
        if not in_dataset.all():
            n_unknown = int(np.count_nonzero(~in_dataset))
            warn(f"{self.path.name}: {n_unknown:,} rows are of items that the dataset lacks")
        n_items = len(items.ids)
        threshold = self.threshold + (_ROUNDING if self.strict else -_ROUNDING)
        empty_label = 0.0 if self.missing == "zero" else np.nan
        columns: dict[str, FloatArray] = {}
        for kind in sorted(set(table["kind"])):
            of_kind = in_dataset & (table["kind"] == kind).to_numpy()
            item_codes = codes[of_kind]
            certainty = certainty_factor(table["score"].to_numpy()[of_kind], item_codes, n_items)
            is_empty = np.bincount(item_codes, minlength=n_items) == 0
            labels = (certainty > threshold).astype(np.float64)
            grades = np.maximum(certainty, 0.0)
            labels[is_empty] = grades[is_empty] = empty_label
            columns |= {kind: labels, f"{kind}_score": grades}
            if is_empty.any():
                outcome = "labelled 0" if self.missing == "zero" else "given no label"
                counts = f"{int(is_empty.sum()):,} of {n_items:,} items"
                warn(f"{self.path.name}: {counts} have no sentence on {kind}: {outcome}")
        return columns


def read_scores(path: Path, kind: str) -> pd.DataFrame:
    """Return a table of sentence scores: ``item_id`` and ``kind`` as text, ``score`` float64.

    Args:
        path: The file.
        kind: What the scores describe if the file has no column ``kind``.

    Raises:
        MissingFile: The file does not exist.
        UnknownColumn: ``item_id`` or ``score`` is missing.
        WrongType: The file is of another type.
        MalformedLine: A line does not fit, a score is not a number from -1 to 1, or a cell is
            empty.
    """
    table = read_text_table(path)
    table.need("item_id", "score")
    cells = pd.Series(table.texts("score"))
    scores = pd.to_numeric(cells, errors="coerce").astype(np.float64)
    invalid = np.flatnonzero(~scores.between(-1, 1))
    if invalid.size:
        row = int(invalid[0])
        message = f"score is not a number from -1 to 1: {cells.iloc[row]!r}"
        raise MalformedLine(message, where=table.place(row))
    kinds = table.ids("kind") if "kind" in table.columns else kind
    return pd.DataFrame({"item_id": table.ids("item_id"), "kind": kinds, "score": scores})
