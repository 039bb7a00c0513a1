from __future__ import annotations

from typing import get_args

from recbias.formats.delimited.layout import Kind, Layout
from recbias.formats.delimited.line_reader import CONVERT


def test_every_kind_of_column_is_read_both_ways() -> None:
    kinds = get_args(Kind)
    assert set(CONVERT) == set(kinds)
    assert Layout(columns={each: each for each in kinds}).schema().names == list(kinds)
