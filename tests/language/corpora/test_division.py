from __future__ import annotations

import numpy as np
import pytest

from recbias.core.errors import NothingLeft, OutOfRange, UnknownName
from recbias.language.corpora import Swap, divide_sentences, swap_sentences
from recbias.language.terms import TermPairs

TERMS = {
    "age": TermPairs("age", ("old", "young"), (("old", "young"),), (("slow", "fast"),)),
    "height": TermPairs("height", ("short", "tall"), (("short", "tall"),)),
}
ROWS = [
    {"id": f"{category}-{number}", "text": f"a {term} man {number}", "category": category}
    for category, term in (("age", "old"), ("height", "short"))
    for number in range(12)
]


def test_parts_are_disjoint_and_of_the_sizes() -> None:
    division = divide_sentences(ROWS, TERMS, (5, 2, 3), np.random.default_rng(3))
    sizes = {part: len(rows) for part, rows in division.parts.items()}
    assert sizes == {"train": 10, "validation": 8, "test": 12}
    assert (division.unused, division.identical) == (4, 0)
    sources = [{row.get("pair_id", row["id"]) for row in rows} for rows in division.parts.values()]
    assert sum(map(len, sources)) == len(set.union(*sources)) == 20
    assert {row["group"] for row in division.parts["train"]} == {"old", "short"}
    first, second = division.parts["test"][:2]
    assert (first["group"], second["group"]) == ("old", "young")
    assert (first["target_set"], second["target_set"]) == ("T1", "T2")
    assert first["text"].replace("old", "young") == second["text"]
    assert first["pair_id"] == second["pair_id"]


def test_the_seed_decides() -> None:
    parts = [
        divide_sentences(ROWS, TERMS, (5, 2, 3), np.random.default_rng(seed)).parts
        for seed in (1, 1, 2)
    ]
    assert parts[0] == parts[1] != parts[2]


def test_repeated_sentences_are_used_once_and_identical_pairs_counted() -> None:
    rows = [*ROWS[:4], {**ROWS[0], "id": "again"}, {**ROWS[0], "id": "x", "text": "a man"}]
    division = divide_sentences(rows, TERMS, (0, 0, 5), np.random.default_rng(0))
    assert len(division.parts["test"]) == 10
    assert division.identical == 1
    assert {row["pair_id"] for row in division.parts["test"]} == {
        "age-0",
        "age-1",
        "age-2",
        "age-3",
        "x",
    }


def test_too_few_sentences_and_unknown_categories_are_refused() -> None:
    with pytest.raises(OutOfRange, match="age has 12 different sentences, fewer than") as caught:
        divide_sentences(ROWS, TERMS, (800, 200, 200), np.random.default_rng(0))
    assert "--train" in caught.value.remedy
    with pytest.raises(UnknownName, match="no category 'colour'"):
        swap_sentences([{**ROWS[0], "category": "colour"}], TERMS)
    row = {**ROWS[0], "text": "nobody"}
    with pytest.raises(NothingLeft, match="target term of age"):
        divide_sentences([row], TERMS, (0, 0, 1), np.random.default_rng(0))


def test_attributes_are_swapped_as_groups_of_their_own() -> None:
    row = {"id": "1", "text": "a slow old man", "category": "age"}
    copies = swap_sentences([row], TERMS, "attributes")
    assert [copy["text"] for copy in copies] == ["a slow old man", "a fast old man"]
    assert [copy["group"] for copy in copies] == ["A1", "A2"]
    assert [copy["id"] for copy in copies] == ["1-A1", "1-A2"]
    back = swap_sentences([{**row, "text": "a fast young man"}], TERMS, both_directions=True)
    assert back[1]["text"] == "a fast old man"


@pytest.mark.parametrize("swap", ["targets", "attributes"])
def test_terms_of_another_script_are_refused(swap: Swap) -> None:
    row = {"id": "1", "text": "她的姐姐", "category": ROWS[0]["category"]}
    with pytest.raises(NothingLeft, match=f"none of the 1 sentences has one of the {swap}"):
        swap_sentences([row], TERMS, swap)
