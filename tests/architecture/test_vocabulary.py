"""The names of the source and of the tests follow the vocabulary of the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.vocabulary import lacks_verb, measure_vocabulary

ROOT = Path(__file__).parents[2]
MAX_EMPTY_NAMES = 5.0
"""Per 1,000 uses of a name."""

MAX_VERBLESS = 8.0
"""Percent of the functions."""


@pytest.mark.parametrize(
    "folder", ["src/recbias", pytest.param("tests", marks=pytest.mark.rotating)]
)
def test_variables_are_domain_nouns_and_functions_start_with_a_verb(folder: str) -> None:
    vocabulary = measure_vocabulary(sorted((ROOT / folder).rglob("*.py")))
    assert vocabulary.empty_per_1000 <= MAX_EMPTY_NAMES, "\n".join(vocabulary.empty_names)
    assert vocabulary.verbless_percent <= MAX_VERBLESS, "\n".join(vocabulary.verbless)


def test_empty_names_and_functions_without_a_verb_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "def drawn(user):\n    found = user\n    return found\n\n"
        "def load():\n    return drawn(1)\n\n"
        "@property\ndef kept(self): ...\n"
        "def test_of(): ...\n"
    )
    vocabulary = measure_vocabulary([path])
    # names: user, found, found, drawn, property (in the order of the lines: 2, 2, 3, 6, 8)
    assert vocabulary.n_names == 5
    assert sorted(vocabulary.empty_names) == [
        f"{path}:2: found",
        f"{path}:3: found",
        f"{path}:6: drawn",
    ]
    assert vocabulary.empty_per_1000 == 600
    assert (vocabulary.n_functions, vocabulary.verbless) == (2, (f"{path}:1: drawn",))
    assert vocabulary.verbless_percent == 50


@pytest.mark.parametrize("name", ["of_lists", "_told", "drawn", "sorted_rows"])
def test_participles_and_prepositions_are_no_verbs(name: str) -> None:
    assert lacks_verb(name)


@pytest.mark.parametrize("name", ["load", "_rank_items", "as_json", "to_csv", "seed_all", "find"])
def test_verbs_conversions_and_nouns_are_allowed(name: str) -> None:
    assert not lacks_verb(name)
