from __future__ import annotations

import pytest

from recbias.core.stage_context import collect_warnings, warn


def test_a_warning_belongs_to_the_innermost_block() -> None:
    with collect_warnings() as outer:
        warn("outer")
        with collect_warnings() as inner:
            warn("inner")
    assert (outer, inner) == (["outer"], ["inner"])


def test_a_warning_outside_a_stage_is_a_python_warning() -> None:
    with pytest.warns(UserWarning, match="3 queries have no list") as caught:
        warn("3 queries have no list")
    assert caught[0].filename == __file__
    with collect_warnings() as warnings:
        pass
    assert warnings == []
