from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import BrokenContract, NothingLeft, UnknownColumn, UnknownIdentifier
from recbias.core.evidence import SentenceScores
from recbias.metrics.perplexity import (
    build_pairs,
    group_sentences,
    resolve_groups,
    split_pairs,
    warn_of_missing,
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


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (None, None, ("a", "b")),
        ("b", None, ("b", "a")),
        (None, "a", ("b", "a")),
        ("b", "a", ("b", "a")),
    ],
)
def test_the_two_groups_that_occur_are_compared(
    a: str | None, b: str | None, expected: tuple[str, str]
) -> None:
    assert resolve_groups(TWO, a, b) == expected


def test_groups_are_in_natural_order() -> None:
    assert resolve_groups(make_scores([("p", "10", 1.0), ("p", "9", 1.0)]), None, None) == (
        "9",
        "10",
    )


def test_more_than_two_groups_must_be_named() -> None:
    three = make_scores([("p", "a", 1.0), ("p", "b", 1.0), ("p", "c", 1.0)])
    assert resolve_groups(three, "c", "a") == ("c", "a")
    with pytest.raises(UnknownIdentifier, match="3 groups: a, b, c") as caught:
        resolve_groups(three, "a", None)
    assert "a: ..., b: ..." in caught.value.remedy


def test_a_group_that_does_not_occur_is_named() -> None:
    with pytest.raises(UnknownIdentifier, match="b: no sentence is of the group 'c'"):
        resolve_groups(TWO, "a", "c")
    for rows in ([], [("p", "a", 1.0)]):
        with pytest.raises(NothingLeft, match=f"{len(rows)} group"):
            resolve_groups(make_scores(rows), None, None)


def test_copies_find_each_other() -> None:
    pairs = build_pairs(TWO, ("a", "b"))
    assert pairs.ids.tolist() == ["8", "9", "10"]
    assert pairs.rows.tolist() == [[4, 1, -1], [-1, 2, 0]]
    assert pairs.sides.tolist() == [1, 0, 1, 0, 0]
    copies = np.array([[5, 2, np.nan], [np.nan, 3, 1]])
    np.testing.assert_array_equal(pairs.of(TWO.perplexity), copies)


def test_other_groups_are_left_out() -> None:
    pairs = build_pairs(
        make_scores([("p", "a", 1.0), ("p", "b", 2.0), ("p", "c", 3.0)]), ("a", "c")
    )
    assert pairs.rows.tolist() == [[0], [2]]
    assert pairs.sides.tolist() == [0, -1, 1]


def test_without_pairs_there_are_none() -> None:
    pairs = build_pairs(make_scores([(None, "a", 1.0), (None, "b", 2.0)]), ("a", "b"))
    assert pairs.rows.shape == (2, 0)


def test_two_sentences_of_one_group_are_no_pair() -> None:
    with pytest.raises(BrokenContract, match="pair 'p' has two sentences of the group 'b'"):
        build_pairs(make_scores([("p", "b", 1.0), ("p", "b", 2.0), ("p", "a", 2.0)]), ("a", "b"))


def test_what_is_missing_is_counted_and_the_first_named() -> None:
    scores = make_scores([("p", "a", 1.0), ("q", "a", np.nan), ("q", "b", 2.0), (None, "b", 1.0)])
    with collect_warnings() as notes:
        warn_of_missing("gap", scores, build_pairs(scores, ("a", "b")))
    assert notes == [
        "gap: 1 of 2 pairs lack a copy, the first is 'p'",
        "gap: 1 sentences are of no pair",
        "gap: 1 sentences have no perplexity, the first is 's1'",
    ]
    with collect_warnings() as notes:
        whole = make_scores([("p", "a", 1.0), ("p", "b", 1.0), ("p", "c", np.nan)])
        warn_of_missing("gap", whole, build_pairs(whole, ("a", "b")))
    assert notes == []


KIND = ["x", "x", "y", "y", None, None]
SIX = [
    ("1", "a", 1.0),
    ("1", "b", 2.0),
    ("2", "a", 3.0),
    ("2", "b", 4.0),
    ("3", "a", 5.0),
    ("3", "b", 6),
]


def test_a_label_parts_the_pairs() -> None:
    scores = make_scores(SIX, kind=KIND)
    with collect_warnings() as notes:
        groups = group_sentences(scores, "kind", "gap")
    parts = list(split_pairs(build_pairs(scores, ("a", "b")), groups))
    assert [name for _, name in parts] == ["kind=x", "kind=y"]
    assert [part.ids.tolist() for part, _ in parts] == [["1"], ["2"]]
    assert [part.sides.tolist() for part, _ in parts] == [
        [0, 1, -1, -1, -1, -1],
        [-1, -1, 0, 1, -1, -1],
    ]
    assert notes == ["gap: 2 sentences have no label 'kind'"]


def test_a_copy_without_partner_has_its_own_label() -> None:
    scores = make_scores([*SIX[:3], (None, "b", 4.0)], kind=["x", "x", "y", "y"])
    groups = group_sentences(scores, "kind", "gap")
    parts = {name: part for part, name in split_pairs(build_pairs(scores, ("a", "b")), groups)}
    assert parts["kind=y"].rows.tolist() == [[2], [-1]]
    assert parts["kind=y"].sides.tolist() == [-1, -1, 0, 1]


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
