"""Sheets on which raters answer a question about texts, and the ratings of responses on them."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from recbias.core.context import warn
from recbias.core.dataset import FloatArray, Ids
from recbias.core.errors import Contradiction, Unwritable, WrongType
from recbias.core.files import compute_digest, digest_file
from recbias.formats.delimited import Table
from recbias.formats.tables import read_text_table

_ITEM, _COLUMNS, _DIGEST = "item", "columns", "sha256"
"""The number of an item in sheets and key; in the key, the columns of its texts, and a digest."""

KEY_FILE = "key.jsonl"
"""The file that says which text each item is; raters do not see it."""

YES_NO: Mapping[str, float] = {
    **dict.fromkeys(("yes", "y", "true", "1", "是"), 1.0),
    **dict.fromkeys(("no", "n", "false", "0", "否"), 0.0),
}
"""The number of each answer to a question of yes or no, without regard to case."""

_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")

QUERY, RESPONSE, MODELS = "query_id", "response_sha256", "models"
_RATER, _QUESTION, _RATING = "rater", "question", "rating"
"""The columns of a file of ratings."""

_SUFFIX = ".jsonl"
"""The suffix of a file of ratings."""


@dataclass(frozen=True, eq=False)
class SheetItem:
    """What raters judge.

    Args:
        cells: The texts that raters see, by column; the same columns in every item.
        key: What the key says of the item, such as its identifier; raters do not see it.
    """

    cells: Mapping[str, str]
    key: Mapping[str, object]


@dataclass(frozen=True, eq=False)
class _Annotations:
    """The answers of the raters."""

    key: Mapping[str, Ids]
    ratings: FloatArray


def write_sheets(
    folder: Path,
    contents: Sequence[SheetItem],
    question: str,
    n_raters: int,
    rng: np.random.Generator,
) -> list[Path]:
    """Write a CSV sheet for each rater, and the key; return the paths of the sheets.

    A sheet has the column ``item``, the texts and the question, whose cells are empty. Items have
    random numbers, and each rater has an order of their own, so that neither says where a text
    comes from. The key has a digest of the texts of each item.

    Args:
        folder: The folder, which must not hold sheets yet.
        contents: The items.
        question: The name of the column to fill in.
        n_raters: The number of raters.
        rng: The generator of the numbers and orders.

    Raises:
        Contradiction: The question is the name of another column.
        Unwritable: A file exists, or cannot be written.
    """
    columns = [*(contents[0].cells if contents else ())]
    if question in {_ITEM, *columns}:
        message = f"{question!r} is another column of the sheets"
        raise Contradiction(message, where="question", remedy="give the question another name")
    paths = [folder / f"rater-{number + 1}.csv" for number in range(n_raters)]
    for path in (*paths, folder / KEY_FILE):
        _refuse_existing(path)
    width = len(str(len(contents)))
    numbers = [f"item-{number + 1:0{width}}" for number in rng.permutation(len(contents))]
    texts = [[clean_cell(content.cells[name]) for name in columns] for content in contents]
    _write_json_lines(
        folder / KEY_FILE,
        (
            {_ITEM: number, **content.key, _COLUMNS: columns, _DIGEST: _digest_cells(cells)}
            for number, content, cells in zip(numbers, contents, texts, strict=True)
        ),
    )
    rows = [[number, *cells, ""] for number, cells in zip(numbers, texts, strict=True)]
    for path in paths:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\r\n")
        writer.writerow((_ITEM, *columns, question))
        order = rng.permutation(len(rows))
        writer.writerows([guard_formula(cell) for cell in rows[row]] for row in order)
        _write(path, text.getvalue(), "utf-8-sig")
    return paths


FORMULA_STARTS = (*"=+-@＝＋－＠", "\t", "\r", "\n")
"""With these characters a spreadsheet takes a cell for a formula."""


def guard_formula(cell: str) -> str:
    """Return a cell that a spreadsheet shows as text: with an apostrophe before a formula.

    >>> guard_formula("=1+1"), guard_formula("1+1")
    ("'=1+1", '1+1')
    """
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell


def _write_json_lines(path: Path, records: Iterable[Mapping[str, object]]) -> Path:
    lines = (json.dumps(dict(record), ensure_ascii=False) for record in records)
    return _write(path, "".join(f"{line}\n" for line in lines))


def _write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    _refuse_existing(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode(encoding, errors="backslashreplace"))
    except OSError as error:
        remedy = "free some space, or give a folder that you may write to"
        message = f"cannot be written: {error.strerror or error}"
        raise Unwritable(message, where=str(path), remedy=remedy) from error
    return path


def _refuse_existing(path: Path) -> None:
    if path.exists():
        remedy = "give another name or folder: a filled sheet is never overwritten"
        raise Unwritable("exists and is not overwritten", where=str(path), remedy=remedy)


def parse_answers(text: str) -> Mapping[str, float]:
    """Return the number of each possible answer: ``yes,no``, or the numbers of a scale.

    >>> parse_answers("0, 1, 2")
    {'0': 0.0, '1': 1.0, '2': 2.0}

    Raises:
        WrongType: These are not at least two distinct numbers.
    """
    names = [name.strip().lower() for name in text.split(",")]
    if sorted(names) == ["no", "yes"]:
        return YES_NO
    try:
        answers = {name: float(name) for name in names}
    except ValueError:
        answers = {}
    numbers = {number for number in answers.values() if math.isfinite(number)}
    if len(numbers) < max(2, len(names)):
        remedy = "give yes,no or the numbers of a scale, such as 0,1,2"
        raise WrongType(f"{text!r} are no answers", where="answers", remedy=remedy)
    return answers


def clean_cell(text: str) -> str:
    """Return a text as it stands in a sheet: lines without control characters and outer space."""
    lines = (" ".join(_CONTROL.sub(" ", line).split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _digest_cells(cells: Sequence[str]) -> str:
    """Return a digest of texts, the same after a spreadsheet has shown and saved them."""
    return compute_digest([_to_plain(cell) for cell in cells])


def _to_plain(cell: str) -> str:
    text = cell.encode("utf-8", "backslashreplace").decode("utf-8")
    return " ".join(text.split()).lstrip("'")


def read_sheets(
    paths: Sequence[Path], key: Path, question: str, answers: Mapping[str, float] = YES_NO
) -> _Annotations:
    """Return the answers on the sheets of the raters.

    Args:
        paths: The sheets, one per rater; a sheet may lack items.
        key: The file ``key.jsonl`` that was written with them.
        question: The column of the answers.
        answers: The number of each answer, in lower case.

    Raises:
        MissingFile: A file does not exist.
        UnknownColumn: A sheet lacks ``item``, a column of texts, or the question.
        MalformedLine: An item is unknown or occurs twice, its texts were changed, or a cell is no
            answer.
        Contradiction: A sheet is given twice.
    """
    items = read_text_table(key)
    items.need(_ITEM, _COLUMNS, _DIGEST)
    numbers = items.ids(_ITEM)
    items.refuse_repeats(numbers, lambda row: f"{numbers[row]!r} has two rows")
    positions = {item: row for row, item in enumerate(numbers)}
    columns, digests = items.texts(_COLUMNS)[0].split("\n"), items.ids(_DIGEST)
    ratings = np.full((len(paths), len(positions)), np.nan)
    seen: dict[str, Path] = {}
    for rater, path in enumerate(paths):
        if (other := seen.setdefault(digest_file(path), path)) is not path:
            message, remedy = f"is the same as {other}", "give the sheet of each rater once"
            if path.samefile(other):
                raise Contradiction(message, where=str(path), remedy=remedy)
            warn(f"{path}: {message}: {remedy}")  # raters of few items may agree in all
        sheet = read_text_table(path)
        sheet.need(_ITEM, *columns, question)
        rows = _find_items(sheet, positions, digests, columns)
        ratings[rater, rows] = _read_answers(sheet, question, answers)
    return _Annotations({name: items.texts(name) for name in items.columns}, ratings)


def _find_items(
    sheet: Table, positions: Mapping[str, int], digests: Ids, columns: Sequence[str]
) -> list[int]:
    """Return the row of the key of each row, whose texts must be those that were written."""
    items = np.array([str(item).strip() for item in sheet.ids(_ITEM)], dtype=object)
    sheet.refuse(
        np.array([item not in positions for item in items]),
        lambda row: f"{items[row]!r} is not in the key",
        "use the sheets and the key of the same folder",
    )
    sheet.refuse_repeats(items, lambda row: f"{items[row]!r} has two rows")
    rows = [positions[item] for item in items]
    texts = zip(*(sheet.texts(name) for name in columns), strict=True)
    found = [_digest_cells(cells) for cells in texts]
    sheet.refuse(
        np.array(found, dtype=object) != digests[rows],
        lambda row: f"the texts of {items[row]!r} are not those that were written",
        "copy the row from the sheet of another rater, and answer it again",
    )
    return rows


def _read_answers(sheet: Table, question: str, answers: Mapping[str, float]) -> FloatArray:
    """Return the number of each answer, NaN for an empty cell.

    A spreadsheet may have written 1 as ``1.0``.
    """
    cells = pd.Series(sheet.texts(question), dtype=object).str.strip().str.lower()
    typed = pd.to_numeric(cells, errors="coerce")
    numbers = cells.map(answers).astype(float).fillna(typed.where(typed.isin(answers.values())))
    sheet.refuse(
        (numbers.isna() & (cells != "")).to_numpy(),
        lambda row: f"{question} is {cells[row]!r}",
        f"write one of {', '.join(answers)}, or leave the cell empty",
    )
    return np.asarray(numbers, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ResponseRatings:
    """The ratings of responses.

    Args:
        query_ids: The query of each response.
        digests: The digest of its text.
        models: The labels of the models that gave it.
        raters: The names of the raters.
        ratings: ``float64[raters, responses]``; NaN where a rater gave none.
    """

    query_ids: Ids
    digests: Ids
    models: tuple[tuple[str, ...], ...]
    raters: tuple[str, ...]
    ratings: FloatArray

    def __len__(self) -> int:
        """Return the number of responses."""
        return int(self.query_ids.size)

    def select(self, query_ids: Iterable[str], texts: Iterable[str]) -> FloatArray:
        """Return the ratings of responses, ``float64[raters, n]``; NaN where there are none.

        A response is found by its query and its text, so that ratings of another text do not
        count for it.
        """
        columns = pd.MultiIndex.from_arrays([self.query_ids, self.digests])
        keys = pd.MultiIndex.from_arrays([list(query_ids), [*map(digest_response, texts)]])
        positions = columns.get_indexer(keys)  # -1, the column added, where there is none
        none = np.full((len(self.raters), 1), np.nan)
        return np.hstack([self.ratings, none])[:, positions]


def digest_response(text: str) -> str:
    """Return the digest by which ratings name the text of a response."""
    return _digest_cells([clean_cell(text)])


def rating_shares(ratings: FloatArray, score: float) -> FloatArray:
    """Return the share of the ratings of each response that equal a score, ``float64[n]``.

    Ratings are ``float64[raters, n]``, NaN if missing; the share is NaN without a rating.

    >>> rating_shares(np.array([[1, 0, np.nan], [1, 1, np.nan]]), 1.0).tolist()
    [1.0, 0.5, nan]
    """
    n_ratings = (~np.isnan(ratings)).sum(axis=0)
    shares = (ratings == score).sum(axis=0) / np.maximum(n_ratings, 1)
    return np.asarray(np.where(n_ratings > 0, shares, np.nan))


def write_ratings(path: Path, ratings: ResponseRatings, question: str) -> Path:
    """Write a JSON object for each rating.

    Raises:
        WrongType: The name of the file does not end in ``.jsonl``.
        Unwritable: The file exists, or cannot be written.
    """
    if path.suffix.lower() != _SUFFIX:
        remedy = f"name it {path.with_suffix(_SUFFIX).name}"
        raise WrongType(f"{path.name} is no file of JSON lines", where="--out", remedy=remedy)
    raters, columns = np.nonzero(~np.isnan(ratings.ratings))
    rows = sorted(zip(columns.tolist(), raters.tolist(), strict=True))
    return _write_json_lines(
        path,
        (
            {
                QUERY: ratings.query_ids[column],
                RESPONSE: ratings.digests[column],
                MODELS: ratings.models[column],
                _RATER: ratings.raters[rater],
                _QUESTION: question,
                _RATING: float(ratings.ratings[rater, column]),
            }
            for column, rater in rows
        ),
    )


def read_ratings(path: Path) -> ResponseRatings:
    """Return the ratings in a table with the columns that ``write_ratings`` writes.

    Raises:
        MissingFile: The file does not exist.
        WrongType: It has another suffix than a table of text.
        UnknownColumn: A column is missing.
        MalformedLine: A rating is no number, a rater rated a response twice, or there are several
            questions.
    """
    table = read_text_table(path)
    table.need(QUERY, RESPONSE, MODELS, _RATER, _QUESTION, _RATING)
    names = (QUERY, RESPONSE, _RATER, _QUESTION)
    queries, digests, raters, questions = (table.ids(name) for name in names)
    values = table.numbers(_RATING)
    table.refuse(
        questions != questions[0],
        lambda row: f"the question is {questions[row]!r}, and {questions[0]!r} above",
        "keep the ratings of each question in a file of their own",
    )
    table.refuse(~np.isfinite(values), f"the {_RATING} is no number")
    responses = np.array(
        [f"{query}\n{text}" for query, text in zip(queries, digests, strict=True)]
    )
    table.refuse_repeats(
        np.array([f"{key}\n{rater}" for key, rater in zip(responses, raters, strict=True)]),
        lambda row: f"{raters[row]!r} already rated this response to {queries[row]!r}",
    )
    _, first, columns = np.unique(responses, return_index=True, return_inverse=True)
    people, rows = np.unique(raters.astype(str), return_inverse=True)
    ratings = np.full((people.size, first.size), np.nan)
    ratings[rows, columns] = values
    models = tuple(tuple(text.split("\n")) for text in table.texts(MODELS)[first])
    return ResponseRatings(queries[first], digests[first], models, tuple(people), ratings)
