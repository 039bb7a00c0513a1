from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import MissingEvidence, UnknownColumn
from recbias.models.neural.feature_fields import Fields, chosen_columns


def table(kind: str = "item", **columns: Any) -> Attributes:
    frame = pd.DataFrame(columns)
    return Attributes(Vocabulary.of([f"x{n}" for n in range(len(frame))]), frame, kind)


def test_rows_without_columns_are_themselves() -> None:
    fields = Fields.of(3, None, ())
    assert fields.values.tolist() == [[0], [1], [2]]
    assert fields.shares.tolist() == [[1], [1], [1]]
    assert (fields.widths, fields.n_values, len(fields)) == ((1,), 3, 3)


def test_slots_by_hand() -> None:
    known = table(genres=["B|A", None, "A"], year=[1999.0, 2001.0, np.nan])
    fields = Fields.of(3, known, ("genres", "year"))
    # values 0 to 2 are the rows, 3 and 4 the genres A and B, 5 and 6 the years
    assert fields.widths == (1, 2, 1)
    assert fields.n_values == 7
    held = [
        {int(value): float(share) for value, share in zip(*row, strict=True) if share}
        for row in zip(fields.values, fields.shares, strict=True)
    ]
    assert held == [{0: 1, 3: 0.5, 4: 0.5, 5: 1}, {1: 1, 6: 1}, {2: 1, 3: 1}]


def test_a_column_of_nothing_is_an_empty_slot() -> None:
    fields = Fields.of(2, table(genres=[None, None]), ("genres",))
    assert fields.shares.tolist() == [[1, 0], [1, 0]]
    assert (fields.values.max(), fields.n_values) == (1, 2)


def test_auto_takes_what_says_something_of_many() -> None:
    known = table(
        title=[f"film {n}" for n in range(40)],
        genres=["A|B", "C"] * 20,
        year=[1990.0, 1991.0] * 20,
        price=np.arange(40) / 7,
        note=[None] * 40,
    )
    assert chosen_columns(known, "auto", "item_features") == ("genres", "year")
    assert chosen_columns(None, "auto", "item_features") == ()
    assert chosen_columns(known, "none", "item_features") == ()
    assert chosen_columns(known, ("title",), "item_features") == ("title",)


def test_columns_of_nothing_known_are_refused() -> None:
    with pytest.raises(MissingEvidence, match="nothing is known of the users") as error:
        chosen_columns(None, ("age",), "user_features")
    assert error.value.where == "user_features"


def test_an_unknown_column_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(UnknownColumn, match="no column 'genre'") as error:
        chosen_columns(table(genres=["A"]), ("genre",), "item_features")
    assert error.value.where == "item_features"
    assert error.value.remedy == "did you mean genres?"
