from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.errors import MissingEvidence
from recbias.models.deepfm import Fields, select_columns


def make_attributes(kind: str = "item", **columns: Any) -> Attributes:
    frame = pd.DataFrame(columns)
    return Attributes(Vocabulary.of([f"x{n}" for n in range(len(frame))]), frame, kind)


def test_slots_by_hand() -> None:
    attributes = make_attributes(genres=["B|A", None, "A"], year=[1999.0, 2001.0, np.nan])
    fields = Fields.from_attributes(3, attributes, ("genres", "year"))
    # values 0 to 2 are the rows, 3 and 4 the genres A and B, 5 and 6 the years
    assert fields.widths == (1, 2, 1)
    assert fields.n_values == 7
    row_values = [
        {int(value): float(share) for value, share in zip(*row, strict=True) if share}
        for row in zip(fields.values, fields.shares, strict=True)
    ]
    assert row_values == [{0: 1, 3: 0.5, 4: 0.5, 5: 1}, {1: 1, 6: 1}, {2: 1, 3: 1}]


def test_auto_selects_columns_with_many_rows_per_value() -> None:
    attributes = make_attributes(
        title=[f"film {n}" for n in range(40)],
        genres=["A|B", "C"] * 20,
        year=[1990.0, 1991.0] * 20,
        price=np.arange(40) / 7,
        note=[None] * 40,
    )
    assert select_columns(attributes, "auto", "item_features") == ("genres", "year")
    assert select_columns(None, "auto", "item_features") == ()
    assert select_columns(attributes, "none", "item_features") == ()
    assert select_columns(attributes, ("title",), "item_features") == ("title",)


def test_columns_without_table_are_refused() -> None:
    with pytest.raises(MissingEvidence, match="the dataset has no users table") as error:
        select_columns(None, ("age",), "user_features")
    assert error.value.where == "user_features"
