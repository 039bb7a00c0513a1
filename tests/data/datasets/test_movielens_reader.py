from __future__ import annotations

import pandas as pd
import pytest

from recbias.data.datasets.movielens_files import ML_1M, ML_20M, ML_100K, Release
from recbias.data.datasets.movielens_reader import YEAR, release_parts


@pytest.mark.parametrize(
    ("title", "year"),
    [
        ("Toy Story (1995)", "1995"),
        ("Death Note (2006–2007)", "2006"),
        ("Death Note (2006-2007)", "2006"),
        ("Doctor Who (2005-)", "2005"),
        ("Land Before Time III (1995) (V)", "1995"),
        ("2001: A Space Odyssey (1968)", "1968"),
        ("Babylon 5", None),
        ("(500) Days of Summer", None),
        ("Film (19955)", None),
    ],
)
def test_the_year_of_a_title(title: str, year: str | None) -> None:
    found = pd.Series([title]).str.extract(YEAR, expand=False).iloc[0]
    assert (None if pd.isna(found) else found) == year


@pytest.mark.parametrize(
    ("release", "parts"),
    [
        (ML_100K, {"train", "items", "users"}),
        (ML_1M, {"train", "items", "users"}),
        (ML_20M, {"train", "items"}),
    ],
)
def test_only_releases_with_demographics_give_users(release: Release, parts: set[str]) -> None:
    assert release_parts(release) == parts
