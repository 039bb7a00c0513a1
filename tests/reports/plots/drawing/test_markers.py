from __future__ import annotations

import itertools
import re

import pytest

from recbias.reports.svg import COLOURS, SHAPES, choose_look, read_style_sheet


def compute_luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def compute_contrast(a: str, b: str) -> float:
    low, high = sorted((compute_luminance(a), compute_luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("block", "paper"), [(0, "#ffffff"), (1, "#1a2027")])
def test_every_series_has_a_colour_that_contrasts_with_the_paper(block: int, paper: str) -> None:
    rules = read_style_sheet().split("@media screen")[block]
    colours = [
        re.findall(rf"\.fig \.c{series} {{ stroke: (#[0-9a-f]{{6}})", rules)
        for series in range(COLOURS)
    ]
    assert all(len(rule) == 1 for rule in colours)
    assert min(compute_contrast(rule[0], paper) for rule in colours) > 2.5


def test_no_two_series_look_alike() -> None:
    looks = [choose_look(series) for series in range(COLOURS * len(SHAPES))]
    assert len(set(looks)) == len(looks)
    assert all(a[0] != b[0] and a[1] != b[1] for a, b in itertools.pairwise(looks))
