from __future__ import annotations

from recbias.core.notes import noting, warn


def test_a_warning_belongs_to_the_innermost_block() -> None:
    with noting() as outer:
        warn("outer")
        with noting() as inner:
            warn("inner")
    assert (outer, inner) == (["outer"], ["inner"])


def test_a_warning_outside_a_block_is_dropped() -> None:
    warn("nobody listens")
    with noting() as notes:
        pass
    assert notes == []
