from __future__ import annotations

from typing import get_args

from recbias.formats.delimited.layout import Kind, Layout
from recbias.formats.delimited.line_reader import CONVERTERS


def test_both_readers_support_every_kind_of_column() -> None:
    kinds = get_args(Kind)
    assert set(CONVERTERS) == set(kinds)
    assert Layout(columns={kind: kind for kind in kinds}).schema().names == list(kinds)
