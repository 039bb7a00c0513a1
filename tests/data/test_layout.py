from __future__ import annotations

from typing import get_args

from recbias.data.exact_reading import CONVERT
from recbias.data.layout import Kind, Layout


def test_every_kind_of_column_is_read_both_ways() -> None:
    kinds = get_args(Kind)
    assert set(CONVERT) == set(kinds)
    assert Layout(columns={each: each for each in kinds}).schema().names == list(kinds)
