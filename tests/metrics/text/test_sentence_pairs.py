from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from recbias.core.errors import BrokenContract, NothingLeft, UnknownColumn, UnknownIdentifier
from recbias.core.evidence import SentenceScores
from recbias.metrics.perplexity import (
    build_pairs,
    group_sentences,
    resolve_groups,
    split_pairs,
)


def make_scores(
    rows: Sequence[tuple[str | None, str, float]], **labels: list[str | None]
) -> SentenceScores:
    """Sentences of (pair, group, perplexity)."""
    pairs, groups, values = zip(*rows, strict=True) if rows else ((), (), ())
    return SentenceScores(
        np.array([f"s{row}" for row in range(len(rows))], dtype=object),
        np.array(pairs, dtype=object),
        np.array(groups, dtype=object),
        np.array(values, dtype=np.float64),
        pd.DataFrame(labels, index=range(len(rows)), dtype=object),
    )


TWO = make_scores(
    [("10", "b", 1.0), ("9", "a", 2.0), ("9", "b", 3.0), (None, "a", 4.0), ("8", "a", 5)]
)


def test_a_group_that_does_not_occur_is_named() -> None:
    with pytest.raises(UnknownIdentifier, match="b: no sentence is of the group 'c'"):
        resolve_groups(TWO, "a", "c")
    for rows in ([], [("p", "a", 1.0)]):
        with pytest.raises(NothingLeft, match=f"{len(rows)} group"):
            resolve_groups(make_scores(rows), None, None)


def test_two_sentences_of_one_group_are_no_pair() -> None:
    with pytest.raises(BrokenContract, match="pair 'p' has two sentences of the group 'b'"):
        build_pairs(make_scores([("p", "b", 1.0), ("p", "b", 2.0), ("p", "a", 2.0)]), ("a", "b"))


KIND = ["x", "x", "y", "y", None, None]
SIX = [
    ("1", "a", 1.0),
    ("1", "b", 2.0),
    ("2", "a", 3.0),
    ("2", "b", 4.0),
    ("3", "a", 5.0),
    ("3", "b", 6),
]


@pytest.mark.usefixtures("stage_warnings")
@pytest.mark.parametrize("kind", [["x", "y", "y", "y"], ["x", None, "y", "y"]])
def test_a_label_that_parts_a_pair_is_refused(kind: list[str | None]) -> None:
    scores = make_scores(SIX[:4], kind=kind)
    groups = group_sentences(scores, "kind", "gap")
    with pytest.raises(BrokenContract, match="copies of pair '1' differ in 'kind'"):
        list(split_pairs(build_pairs(scores, ("a", "b")), groups))


def test_a_label_that_no_sentence_carries_is_named() -> None:
    with pytest.raises(UnknownColumn, match="no column 'kinds'") as caught:
        group_sentences(make_scores(SIX, kind=KIND), "kinds", "gap")
    assert caught.value.remedy == "did you mean kind?"
    with pytest.raises(NothingLeft, match="carries the label 'kind'"):
        group_sentences(make_scores(SIX, kind=[None] * 6), "kind", "gap")
