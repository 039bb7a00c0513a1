"""Sentences of a dataset as queries, pair by pair."""

from __future__ import annotations

import pandas as pd

from recbias.core.dataset.sentences import Sentences
from recbias.core.errors import NothingLeft
from recbias.core.queries.queries import Queries


def make_sentence_queries(sentences: Sentences, part: str) -> Queries:
    """Return the sentences of a part as queries, the sentences of a pair one after another.

    Labels are ``pair_id``, ``group`` and the labels of the sentences.

    >>> rows = [("a", "test", "1", "old", "He is 80."), ("b", "test", "1", "young", "He is 20.")]
    >>> frame = pd.DataFrame(rows, columns=["id", "part", "pair_id", "group", "text"])
    >>> make_sentence_queries(Sentences(frame), "test").labels.frame["group"].tolist()
    ['old', 'young']

    Raises:
        NothingLeft: The part has no sentences.
    """
    return Queries.of_prompts(tabulate_part(sentences, part))


def tabulate_part(sentences: Sentences, part: str) -> pd.DataFrame:
    """Return the rows of a part for ``Queries.of_prompts``, pair by pair.

    Raises:
        NothingLeft: The part has no sentences.
    """
    frame = sentences.take_part(part).frame.drop(columns="part")
    if frame.empty:
        parts = [str(name) for name in sentences.frame["part"].unique()]
        remedy = f"the dataset has sentences for {', '.join(parts)}" if parts else ""
        raise NothingLeft(f"there are no sentences for {part}", where="part", remedy=remedy)
    positions = pd.Series(range(len(frame)), dtype=int)
    first_of_pair = positions.groupby(frame["pair_id"].to_numpy()).transform("min")
    order = first_of_pair.fillna(positions).sort_values(kind="stable").index
    return frame.iloc[order].reset_index(drop=True)
