from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.language.titles import list_title_forms, normalize_title, restore_article, split_year


@pytest.mark.parametrize(
    ("text", "title", "year"),
    [
        ("Toy Story (1995)", "Toy Story", 1995),
        ("Toy Story [1995]", "Toy Story", 1995),
        ("Toy Story ( 1995 )", "Toy Story", 1995),
        ("Toy Story, 1995", "Toy Story", 1995),
        ("Toy Story - 1995", "Toy Story", 1995),
        ("Toy Story (1995 film)", "Toy Story", 1995),
        ("Toy Story (animated, 1995)", "Toy Story", 1995),
        ("Toy Story (1995, directed by John Lasseter)", "Toy Story", 1995),
        ("Babylon 5 (1994-1998)", "Babylon 5", 1994),
        ("Toy Story (1995) – remade in (2010)", "Toy Story", 1995),
        ("Seven (a.k.a. Se7en) (1995)", "Seven (a.k.a. Se7en)", 1995),
        ("1984 (Nineteen Eighty-Four) (1984)", "1984 (Nineteen Eighty-Four)", 1984),
        ("2001 Maniacs (a.k.a. 2001 Dead) (2005)", "2001 Maniacs (a.k.a. 2001 Dead)", 2005),
        ("Blade Runner 2049", "Blade Runner 2049", None),
        ("1984", "1984", None),
        ("(1995)", "(1995)", None),
        ("Movie (1234)", "Movie (1234)", None),
        ("Movie (19955)", "Movie (19955)", None),
        ("", "", None),
    ],
)
def test_year_is_split_from_the_title(text: str, title: str, year: int | None) -> None:
    assert split_year(text) == (title, year)


@pytest.mark.parametrize(
    ("spelling", "other"),
    [
        ("Amélie", "AMELIE"),
        ("Smørrebrød", "smorrebrod"),
        ("Straße", "strasse"),
        ("Fast & Furious", "Fast and Furious"),
        ("Spider-Man: No Way Home", "Spider Man  no way home!"),
        ("Schindler's List", "Schindler’s List"),
        ("E.T. the Extra-Terrestrial", "ET the extra terrestrial"),
        ("Rocky III", "Rocky 3"),
        ("Alien³", "Alien3"),
        ("M*A*S*H", "MASH"),
    ],
)
def test_spellings_have_the_same_words(spelling: str, other: str) -> None:
    assert normalize_title(spelling) == normalize_title(other)


@pytest.mark.parametrize(
    ("moved", "restored"),
    [
        ("Matrix, The", "The Matrix"),
        ("Few Good Men, A", "A Few Good Men"),
        ("Haine, La", "La Haine"),
        ("Misérables, Les", "Les Misérables"),
        ("Avventura, L'", "L'Avventura"),
        ("Mariachi, El", "El Mariachi"),
        ("Boot, Das", "Das Boot"),
        ("Postino, Il", "Il Postino"),
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
