from __future__ import annotations

import pandas as pd
import pytest

from recbias.data.movielens import YEAR


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
def test_the_year_is_extracted_from_the_title(title: str, year: str | None) -> None:
    match = pd.Series([title]).str.extract(YEAR, expand=False).iloc[0]
    assert (None if pd.isna(match) else match) == year
