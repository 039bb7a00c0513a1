from __future__ import annotations

from pathlib import Path

from recbias.data.movielens import GENRE_FLAGS, ML_100K, OCCUPATIONS


def test_genres_are_those_of_u_genre(real_data: Path) -> None:
    lines = (real_data / "ml-100k" / "u.genre").read_text().split()
    assert [line.partition("|")[0] for line in lines] == list(GENRE_FLAGS)


def test_occupations_are_those_of_the_readme(real_data: Path) -> None:
    text = (real_data / "ml-1m" / "README").read_text(encoding="latin-1")
    for code, name in enumerate(OCCUPATIONS):
        assert f'*{code:>3}:  "{name}"' in text


def test_u_item_has_24_columns() -> None:
    assert len(ML_100K.movies.layout.columns) == 24
