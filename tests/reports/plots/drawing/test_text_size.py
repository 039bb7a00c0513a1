from __future__ import annotations

from recbias.reports.plots.drawing.text_size import estimate_width, shorten


def test_labels_are_shortened_to_one_line() -> None:
    assert shorten("abcdefghij", 5) == "abcd…"
    assert shorten("a\nb") == "a b"


def test_broad_characters_are_wider_than_narrow_ones() -> None:
    assert estimate_width("🦊") > estimate_width("W") > estimate_width("a") > estimate_width("i")
    assert estimate_width("abc", 26) == 2 * estimate_width("abc", 13)
