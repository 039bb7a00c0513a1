"""The colours of the pictures: Okabe and Ito's, which people tell apart however they see them."""

from __future__ import annotations

INK, QUIET, AXIS, GRID, PAPER = "#1d2530", "#59646f", "#8b96a1", "#e6eaed", "#ffffff"

SERIES = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#4d4d4d", "#f0e442"),
)
"""Of what stands side by side: blue, vermilion, green, purple, sky, orange, grey, yellow."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""The marker that goes with each colour: nothing is told by colour alone."""

FILL = "#cfe1ee"
"""Of areas."""

NAMES: dict[str, str] = {
    INK: "ink",
    QUIET: "quiet",
    AXIS: "axis",
    GRID: "grid",
    PAPER: "paper",
    FILL: "fill",
    **{colour: f"series-{place}" for place, colour in enumerate(SERIES)},
}
"""What ``page.css`` calls each colour, so that a page by night can have others."""


def look(place: int) -> tuple[str, str]:
    """Return the colour and the marker of a series.

    >>> look(1), look(9)
    (('#d55e00', 's'), ('#d55e00', '^'))
    """
    turn, colour = divmod(place, len(SERIES))
    return SERIES[colour], MARKERS[(colour + turn) % len(MARKERS)]
