"""The colours of the pictures: Okabe and Ito's, which people tell apart however they see them."""

from __future__ import annotations

INK, QUIET, AXIS, GRID, PAPER = "#1d2530", "#59646f", "#8b96a1", "#e6eaed", "#ffffff"

SERIES = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#4d4d4d", "#f0e442"),
)
"""Of what stands side by side: blue, vermilion, green, purple, sky, orange, grey, yellow."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""The marker that goes with each colour: nothing is told by colour alone."""

STEPS = (
    *("#d55e00", "#e38b47", "#efb58b", "#f7dcc9"),
    "#f1f3f5",
    *("#cfe1ee", "#94c0de", "#4d98c8", "#0072b3"),
)
"""From -1, vermilion, over 0 to 1, blue."""

NAMES: dict[str, str] = {
    INK: "ink",
    QUIET: "quiet",
    AXIS: "axis",
    GRID: "grid",
    PAPER: "paper",
    **{colour: f"series-{place}" for place, colour in enumerate(SERIES)},
    **{colour: f"step-{place}" for place, colour in enumerate(STEPS) if colour not in SERIES},
}
"""What ``page.css`` calls each colour, so that a page by night can have others."""


def look(place: int) -> tuple[str, str]:
    """Return the colour and the marker of a series.

    >>> look(1), look(9)
    (('#d55e00', 's'), ('#d55e00', '^'))
    """
    turn, colour = divmod(place, len(SERIES))
    return SERIES[colour], MARKERS[(colour + turn) % len(MARKERS)]


def step(value: float) -> tuple[str, str]:
    """Return the colour of a figure from -1 to 1, and that of the text upon it.

    >>> step(0.0), step(1.0)
    (('#f1f3f5', '#1d2530'), ('#0072b3', '#ffffff'))
    """
    place = min(max(round((value + 1) * (len(STEPS) - 1) / 2), 0), len(STEPS) - 1)
    return STEPS[place], PAPER if place in {0, len(STEPS) - 1} else INK
