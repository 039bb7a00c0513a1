"""Labels from scores of an item's sentences, combined by the Stanford certainty factor."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Interval

from recbias.core.arrays import AnyArray, FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import MalformedLine, MissingFile, UnknownColumn, UnknownIdentifier
from recbias.core.input_files import has_file
from recbias.core.protocols import InputFile
from recbias.core.stage_context import warn
from recbias.core.suggestions import suggest
from recbias.numerics.certainty_factor import certainty_factor

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """Label items by the scores of their sentences, made by any model that scores sentences.

        x and y together:  x + y - x y  (both ≥ 0),  x + y + x y  (both ≤ 0),
                           (x + y) / (1 - min(|x|, |y|))  (opposite signs)
        label = 1 if the scores of all sentences together > threshold else 0

    The file (CSV, TSV, either may be ``.gz``, or Parquet) has one row a sentence: ``item_id``,
    ``score`` from -1 (against the stereotype) to 1 (a stereotype) and, where there are several
    stereotypes, ``kind`` (gender, race, ...); other columns are ignored. The order of the rows
    does not matter. Beside the label of each kind there is its grade, ``gender_score``: the
    combined score, 0 where it is negative. Rows of items that the dataset lacks are left out; they
    and items without a sentence are counted in a warning.

    Args:
        path: The file.
        threshold: The combined score from which an item is labelled.
        strict: Label above the threshold only, not at it. Scores closer than 1e-12 are at it.
        kind: What the scores are of where the file has no column ``kind``.
        missing: What an item without a sentence is labelled: ``zero`` as in the paper, or
            ``undefined``.

    Raises:
        MissingFile: The file is not there.
        UnknownColumn: A column is absent.
        MalformedLine: It is no such table, a score is no number from -1 to 1, or a cell is empty.
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
        """Return the kinds that the file has, sorted."""
        return tuple(sorted(set(read_scores(self.path, self.kind)["kind"])))

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and grades of each kind; ``rng`` is unused."""
        table = read_scores(self.path, self.kind)
        codes = items.ids.find(table["item_id"].to_numpy(dtype=object))
        known = codes >= 0
        if not known.any():
            found = f"none of the items of {self.path.name} is in the dataset"
            remedy = (
                f"write ids as the dataset does: {items.ids.ids[0]!r}" if len(items.ids) else ""
            )
            raise UnknownIdentifier(found, where="path", remedy=remedy)
        if not known.all():
            lost = int(np.count_nonzero(~known))
            warn(f"{self.path.name}: {lost:,} rows are of items that the dataset lacks")
        columns: dict[str, FloatArray] = {}
        kept, of_rows = table[known], codes[known]
        for kind in sorted(set(table["kind"])):
            mine = (kept["kind"] == kind).to_numpy()
            columns |= self._of_kind(kind, kept["score"].to_numpy()[mine], of_rows[mine], items)
        return columns

    def _of_kind(
        self, kind: str, scores: FloatArray, codes: AnyArray, items: Attributes
    ) -> dict[str, FloatArray]:
        n_items = len(items.ids)
        certainty = certainty_factor(scores, codes, n_items)
        none = np.bincount(codes, minlength=n_items) == 0
        edge = self.threshold + (_ROUNDING if self.strict else -_ROUNDING)
        labels = (certainty > edge).astype(np.float64)
        grades = np.maximum(certainty, 0.0)
        if self.missing == "undefined":
            labels[none] = grades[none] = np.nan
        else:
            labels[none] = 0.0
        if none.any():
            outcome = "labelled 0" if self.missing == "zero" else "left without a label"
            of_all = f"{int(none.sum()):,} of {n_items:,} items"
            warn(f"{self.path.name}: {of_all} have no sentence on {kind}: {outcome}")
        return {kind: labels, f"{kind}_score": grades}


def read_scores(path: Path, kind: str) -> pd.DataFrame:
    """Return a table of sentence scores: ``item_id`` and ``kind`` as text, ``score`` float64.

    Args:
        path: The file.
        kind: What the scores are of where the file has no column ``kind``.

    Raises:
        MissingFile: The file is not there.
        UnknownColumn: ``item_id`` or ``score`` is absent.
        MalformedLine: It is no table, a score is no number from -1 to 1, or a cell is empty.
    """
    if not has_file(path):
        raise MissingFile(f"no file {str(path)!r}", remedy="paths are relative to the spec")
    table = _read(path)
    names = [str(each) for each in table.columns]
    for name in ("item_id", "score"):
        if name not in names:
            found, remedy = f"there is no column {name!r}", suggest(name, names)
            raise UnknownColumn(found, where=str(path), remedy=remedy)
    twice = [name for name in ("item_id", "score", "kind") if names.count(name) > 1]
    if twice:
        raise MalformedLine(f"two columns are called {twice[0]!r}", where=f"{path}:1")
    kinds = table["kind"] if "kind" in names else kind
    scores = pd.to_numeric(table["score"], errors="coerce").astype(np.float64)
    made = pd.DataFrame({"item_id": table["item_id"], "kind": kinds, "score": scores})
    _refuse(path, ~scores.between(-1, 1), "score is not a number from -1 to 1", table["score"])
    for name in ("item_id", "kind"):
        _refuse(path, made[name] == "", f"{name} is empty", made[name])
    return made


def _refuse(path: Path, wrong: pd.Series[bool], what: str, cells: pd.Series[Any]) -> None:
    rows = np.flatnonzero(wrong)
    if rows.size:
        found = f"{what}: {cells.iloc[rows[0]]!r}"
        raise MalformedLine(found, where=_place(path, int(rows[0])))


def _kind_of(path: Path) -> str:
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    if kind not in {*_DELIMITERS, ".parquet"}:
        remedy = "give a .csv, .tsv, .csv.gz, .tsv.gz or .parquet file"
        raise MalformedLine("is not a kind of table that is read", where=str(path), remedy=remedy)
    return kind


def _read(path: Path) -> pd.DataFrame:
    """Return the cells of a table as text, ``""`` where they are empty."""
    kind = _kind_of(path)
    try:
        if kind == ".parquet":
            raw = pd.read_parquet(path)
            return raw.astype(object).where(raw.notna(), "").astype(str)
        separator = _DELIMITERS[kind]
        cells = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, header=None)
        rows = cells.iloc[1:].reset_index(drop=True).fillna("")
        return rows.set_axis(cells.iloc[0].tolist(), axis=1)
    except (OSError, ValueError) as error:  # pandas' and pyarrow's parsing errors are ValueErrors
        found = f"is not a table: {str(error).partition(chr(10))[0]}"
        raise MalformedLine(found, where=str(path)) from error


def _place(path: Path, row: int) -> str:
    """Return ``file:line`` of a row, from 0; ``file: row n`` in a Parquet file."""
    kind = _kind_of(path)
    if kind == ".parquet":
        return f"{path}: row {row + 1:,}"
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader, start = csv.reader(file, delimiter=_DELIMITERS[kind]), 1
        for cells in reader:
            row -= bool(cells)
            if row == -2:  # the header is the first of the rows
                break
            start = reader.line_num + 1
        return f"{path}:{start}"
