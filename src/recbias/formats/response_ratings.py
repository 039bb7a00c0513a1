"""Ratings of responses by people: what ``recbias human import`` writes, and metrics read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from recbias.core.arrays import FloatArray, Ids
from recbias.core.errors import MalformedLine, WrongType
from recbias.formats.annotation_sheets import clean_cell, digest_cells
from recbias.formats.text_tables import read_text_table
from recbias.formats.written_files import write_json_lines

QUERY, RESPONSE, MODELS = "query_id", "response_sha256", "models"
RATER, QUESTION, RATING = "rater", "question", "rating"
"""The columns of a file of ratings."""

SUFFIX = ".jsonl"
"""The suffix of a file of ratings."""


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
        keys = zip(self.query_ids, self.digests, strict=True)
        columns = {key: column for column, key in enumerate(keys)}
        positions = [
            columns.get((query_id, digest_response(text)), -1)
            for query_id, text in zip(query_ids, texts, strict=True)
        ]
        none = np.full((len(self.raters), 1), np.nan)
        return np.hstack([self.ratings, none])[:, np.array(positions, dtype=np.int64)]


def digest_response(text: str) -> str:
    """Return the digest by which ratings name the text of a response."""
    return digest_cells([clean_cell(text)])


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
    if path.suffix.lower() != SUFFIX:
        remedy = f"name it {path.with_suffix(SUFFIX).name}"
        raise WrongType(f"{path.name} is no file of JSON lines", where="--out", remedy=remedy)
    return write_json_lines(path, _list_ratings(ratings, question))


def _list_ratings(ratings: ResponseRatings, question: str) -> Iterator[dict[str, object]]:
    for column, query_id in enumerate(ratings.query_ids):
        of_response = {
            QUERY: query_id,
            RESPONSE: ratings.digests[column],
            MODELS: ratings.models[column],
        }
        for rater, rating in zip(ratings.raters, ratings.ratings[:, column], strict=True):
            if not np.isnan(rating):
                yield {**of_response, RATER: rater, QUESTION: question, RATING: float(rating)}


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
    table.need(QUERY, RESPONSE, MODELS, RATER, QUESTION, RATING)
    names = (QUERY, RESPONSE, RATER, QUESTION)
    queries, digests, raters, questions = (table.ids(name) for name in names)
    values = table.numbers(RATING)
    for row in range(len(table)):
        if questions[row] != questions[0]:
            message = f"the question is {questions[row]!r}, and {questions[0]!r} above"
            remedy = "keep the ratings of each question in a file of their own"
            raise MalformedLine(message, where=table.place(row), remedy=remedy)
        if not np.isfinite(values[row]):
            raise MalformedLine(f"the {RATING} is no number", where=table.place(row))
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
