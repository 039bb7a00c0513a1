from __future__ import annotations

from typing import get_args

from recbias.formats.delimited.line_reader import CONVERTERS

from recbias.formats.delimited import Kind, Layout


def test_both_readers_support_every_kind_of_column() -> None:
    kinds = get_args(Kind)
    assert set(CONVERTERS) == set(kinds)
    assert Layout(columns={kind: kind for kind in kinds}).schema().names == list(kinds)
