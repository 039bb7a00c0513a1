from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from recbias.core.errors import MissingExtra, OutOfRange
from recbias.language.titles import (
    CatalogueTitles,
    index_titles,
    list_title_forms,
    normalize_title,
    restore_article,
    split_year,
)

TITLES = (
    "Matrix, The (1999)",  # 0
    "Cité des enfants perdus, La (City of Lost Children, The) (1995)",  # 1
    "Seven (a.k.a. Se7en) (1995)",  # 2
    "Back to the Future Part II (1989)",  # 3
    "Hamlet (1990)",  # 4
    "Hamlet (1996)",  # 5
    "Emma (1996)",  # 6
    "Emma (1996)",  # 7
    "Babylon 5",  # 8
    "Avventura, L' (Adventure, The) (1960)",  # 9
    "Fast & Furious (2009)",  # 10
    "Schindler's List (1993)",  # 11
    "$ (Dollars) (1971)",  # 12
    "Lost Weekend, The (1945)",  # 13
    "Mission: Impossible - Ghost Protocol (2011)",  # 14
)
POPULARITY = np.array([9, 1, 1, 1, 2, 5, 3, 8, 1, 1, 1, 1, 1, 1, 1])


@pytest.fixture(scope="module")
def films() -> CatalogueTitles:
    return index_titles(TITLES, popularity=POPULARITY)


@pytest.fixture
def listed(real_data: Path) -> list[str]:
    path = real_data / "ml-latest-small" / "movies.csv"
    if not path.is_file():
        pytest.skip("no ml-latest-small")
    with path.open(encoding="utf-8", newline="") as stream:
        return [row["title"] for row in csv.DictReader(stream)]


@pytest.mark.parametrize(
    ("title", "year", "code"),
    [
        ("The Matrix", 1999, 0),
        ("matrix", None, 0),
        ("The Matrix", 2000, 0),
        ("The Matrix", 2001, -1),
        ("Cite des enfants perdus", 1995, 1),
        ("The City of Lost Children", 1995, 1),
        ("City of Lost Children (La cité des enfants perdus)", 1995, 1),
        ("Se7en", 1995, 2),
        ("Back to the Future Part 2", 1989, 3),
        ("Babylon 5", 1993, 8),
        ("L’avventura", 1960, 9),
        ("The Adventure", 1960, 9),
        ("Fast and Furious", 2009, 10),
        ("Schindlers List", 1993, 11),
        ("A Lost Weekend", 1945, 13),
        ("Matrix - a film about machines", None, 0),
        ("Mission: Impossible – Ghost Protocol", 2011, 14),
        ("", None, -1),
        ("???", None, -1),
    ],
)
def test_equal_forms_match(
    films: CatalogueTitles, title: str, year: int | None, code: int
) -> None:
    matches = films.match([title], [year])
    assert matches.codes.tolist() == [code]
    assert matches.exact.tolist() == [code >= 0]
    assert np.array_equal(matches.scores, [100.0 if code >= 0 else np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("title", "year", "code", "ambiguous"),
    [
        ("Hamlet", 1990, 4, False),  # the smaller difference of years
        ("Hamlet", 1995, 5, False),
        ("Hamlet", 1991, 4, False),
        ("Hamlet", None, 5, True),  # no year: the more popular, 5 > 2 ratings
        ("Emma", 1996, 7, True),  # one title and year: the more popular, 8 > 3 ratings
        ("Emma", None, 7, True),
    ],
)
def test_items_of_one_title_are_told_apart_by_year_then_popularity(
    films: CatalogueTitles, title: str, year: int | None, code: int, ambiguous: bool
) -> None:
    matches = films.match([title], [year])
    assert (matches.codes.tolist(), matches.ambiguous.tolist()) == ([code], [ambiguous])


def test_title_as_written_comes_before_an_alternative_title() -> None:
    films = index_titles(["Leon (Nikita) (1990)", "Nikita (1990)"], popularity=np.array([9, 1]))
    matches = films.match(["Nikita"], [1990])
    assert (matches.codes.tolist(), matches.ambiguous.tolist()) == ([1], [False])


@pytest.mark.parametrize(
    ("title", "year", "code", "score"),
    [
        # 13 common letters of 13 and of 15, articles and punctuation left out
        ("Schindler Lst", 1993, 11, 100 * 2 * 13 / 28),
        ("Schindler's Lists", 1993, 11, 100 * 2 * 15 / 31),
        ("Schindler's Lists", 1995, -1, np.nan),  # two years apart
        ("Schindler's Lists", None, 11, 100 * 2 * 15 / 31),
        ("Back to the Future Part III", 1990, -1, np.nan),  # another part
        ("Back to the Future", 1989, -1, np.nan),
        ("Back to teh Future Part II", 1989, 3, 100 * 2 * 24 / 50),
        ("Completely Invented", None, -1, np.nan),
    ],
)
def test_similar_title_matches_with_its_numbers_and_year(
    films: CatalogueTitles, title: str, year: int | None, code: int, score: float
) -> None:
    matches = films.match([title], [year])
    assert matches.codes.tolist() == [code]
    assert matches.exact.tolist() == [False]
    np.testing.assert_allclose(matches.scores, [score], rtol=1e-6)


def test_threshold_is_the_smallest_similarity() -> None:
    # 'heat' and 'heats': 2 x 4 / 9 = 88.9
    for threshold, code in [(88.0, 0), (89.0, -1), (None, -1)]:
        films = index_titles(["Heat (1995)"], threshold=threshold)
        assert films.match(["Heats"], [1995]).codes.tolist() == [code]


@pytest.mark.parametrize("threshold", [0, -1, 100.5, float("nan")])
def test_threshold_out_of_range_is_rejected(threshold: float) -> None:
    with pytest.raises(OutOfRange):
        index_titles(TITLES, threshold=threshold)


def test_equally_similar_items_are_ambiguous() -> None:
    titles = ["Red Rivers (1990)", "Red Rivera (1990)"]
    films = index_titles(titles, popularity=np.array([1, 2]))
    matches = films.match(["Red River"], [1990])  # 2 x 9 / 19 for both; the second is more popular
    assert (matches.codes.tolist(), matches.ambiguous.tolist()) == ([1], [True])


def test_years_of_a_column_replace_those_of_the_titles() -> None:
    films = index_titles(["Heat", "Heat"], years=[1986, 1995])
    assert films.match(["Heat", "Heat"], [1986, 1995]).codes.tolist() == [0, 1]


@pytest.mark.real_data
def test_every_title_of_movielens_matches_itself(listed: list[str]) -> None:
    names, years = zip(*map(split_year, listed), strict=True)
    films = index_titles(listed)
    for titles in (names, [restore_article(name) for name in names]):
        matches = films.match(titles, years)
        assert matches.exact.all()
        others = np.flatnonzero(matches.codes != np.arange(len(listed)))
        # five pairs of films have one title and year
        assert [listed[other] for other in others] == [
            listed[matches.codes[other]] for other in others
        ]
        assert others.size == 5
        assert matches.ambiguous.sum() == 10


@pytest.mark.parametrize(
    ("text", "title", "year"),
    [
        ("Toy Story (1995)", "Toy Story", 1995),
        ("Toy Story [1995]", "Toy Story", 1995),
        ("Toy Story, 1995", "Toy Story", 1995),
        ("Toy Story (animated, 1995)", "Toy Story", 1995),
        ("Toy Story (1995, directed by John Lasseter)", "Toy Story", 1995),
        ("Babylon 5 (1994-1998)", "Babylon 5", 1994),
        ("Toy Story (1995) – remade in (2010)", "Toy Story", 1995),
        ("Seven (a.k.a. Se7en) (1995)", "Seven (a.k.a. Se7en)", 1995),
        ("1984 (Nineteen Eighty-Four) (1984)", "1984 (Nineteen Eighty-Four)", 1984),
        ("Blade Runner 2049", "Blade Runner 2049", None),
        ("1984", "1984", None),
        ("(1995)", "(1995)", None),
        ("Movie (1234)", "Movie (1234)", None),
        ("", "", None),
    ],
)
def test_year_is_split_from_the_title(text: str, title: str, year: int | None) -> None:
    assert split_year(text) == (title, year)


@pytest.mark.parametrize(
    ("moved", "restored"),
    [
        ("Matrix, The", "The Matrix"),
        ("Avventura, L'", "L'Avventura"),
        ("Cité des enfants perdus, La", "La Cité des enfants perdus"),
        ("Little Indian, Big City", "Little Indian, Big City"),
        ("Good, the Bad and the Ugly, The", "The Good, the Bad and the Ugly"),
        ("I, Robot", "I, Robot"),
    ],
)
def test_moved_article_is_restored(moved: str, restored: str) -> None:
    assert restore_article(moved) == restored
    assert list_title_forms(moved) == (normalize_title(restored),)


def test_alternative_titles_are_forms_of_their_own() -> None:
    title = "Cité des enfants perdus, La (City of Lost Children, The)"
    assert list_title_forms(title)[1:] == (
        "la cite des enfants perdus",
        "the city of lost children",
    )


@given(st.text(max_size=60), st.integers(1900, 2030))
def test_year_in_brackets_at_the_end_is_found(title: str, year: int) -> None:
    _, read = split_year(f"x{title} ({year})")
    assert read is not None


WORDS = st.text("abc ", min_size=1, max_size=12).map(lambda text: " ".join(f"x{text}".split()))


@given(st.lists(WORDS, min_size=1, max_size=8), WORDS, st.sampled_from([60.0, 80.0, 95.0]))
def test_bounds_exclude_no_title_that_is_similar_enough(
    titles: list[str], query: str, threshold: float
) -> None:
    catalogue = index_titles(titles, threshold=threshold)
    nearest = catalogue.find_nearest([query], np.array([0], dtype=np.int32), threshold)
    scores = np.array([fuzz.ratio(query, title) for title in titles])
    if scores.max() < threshold:
        assert nearest.codes.tolist() == [-1]
        assert np.isnan(nearest.scores).all()
    else:
        assert scores[nearest.codes[0]] == scores.max()
        assert nearest.scores[0] == pytest.approx(scores.max(), rel=1e-6)


def test_without_rapidfuzz_a_threshold_is_refused_with_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(MissingExtra, match="needs the package 'rapidfuzz'") as caught:
        index_titles(["Heat (1995)"])
    assert ".[llm]" in caught.value.remedy
    films = index_titles(["Heat (1995)"], threshold=None)
    assert films.match(["heat"], [1995]).codes.tolist() == [0]
