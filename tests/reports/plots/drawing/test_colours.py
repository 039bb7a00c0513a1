from __future__ import annotations

import itertools
from importlib.resources import files

from recbias.reports.plots.drawing.colours import INK, MARKERS, NAMES, PAPER, SERIES, look


def channel(part: int) -> float:
    value = part / 255
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def luminance(colour: str) -> float:
    red, green, blue = (channel(int(colour[at : at + 2], 16)) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_a_page_by_night_has_a_colour_for_each() -> None:
    sheet = files("recbias.reports.writers").joinpath("page.css").read_text(encoding="utf-8")
    assert [each for each in NAMES.values() if f"--picture-{each}: #" not in sheet] == []
    assert len(set(NAMES.values())) == len(NAMES)


def test_marks_stand_out_from_paper() -> None:
    """The last, yellow, is told by its mark."""
    assert min(contrast(each, PAPER) for each in SERIES[:4]) > 2.5
    assert contrast(INK, PAPER) > 12


def test_no_two_of_many_series_look_alike() -> None:
    looks = [look(place) for place in range(len(SERIES) * len(MARKERS))]
    assert len(set(looks)) == len(looks)
    pairs = itertools.pairwise(looks)
    assert all(a[0] != b[0] and a[1] != b[1] for a, b in pairs)
