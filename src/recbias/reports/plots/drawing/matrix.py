"""Square matrices: labels on the left and below, a coloured cell for each pair."""

from __future__ import annotations

from collections.abc import Sequence

from recbias.reports.markup import Safe, join
from recbias.reports.plots.drawing import svg

_TOP = 8.0


class Matrix:
    """The layout of a matrix.

    Names are shortened to ``longest`` characters; ``sizes`` are the smallest and largest cell.
    """

    def __init__(self, names: Sequence[str], longest: int, sizes: tuple[float, float]) -> None:
        self._labels = svg.shorten_all(names, longest)
        widest = max(map(svg.estimate_width, self._labels))
        self._start = 12 + widest
        self._size = min(sizes[1], max(sizes[0], (svg.WIDTH - self._start - 8) / len(names)))
        side = self._size * len(names)
        self._bottom = _TOP + side
        self.width = max(float(svg.WIDTH), self._start + side + 8)
        self.foot = self._bottom + 24 + 0.71 * widest

    def draw_labels(self) -> Safe:
        """Return the labels of the rows, and those of the columns at an angle."""
        elements = []
        y = self._bottom + 14
        for position, label in enumerate(self._labels):
            middle = (position + 0.5) * self._size
            elements.append(svg.draw_text((self._start - 8, _TOP + middle + 4.5), label, "end"))
            x = self._start + middle + 2
            turn = f"rotate(-45 {svg.format_coordinate(x)} {svg.format_coordinate(y)})"
            elements.append(svg.draw_text((x, y), label, "end", transform=turn))
        return join(*elements)

    def draw_cell(
        self, cell: tuple[int, int], class_: str, title: str, text: tuple[str, str] = ("", "")
    ) -> Safe:
        """Return the cell in a row and column, with a tooltip, and a text and its class."""
        x, y = self._start + cell[1] * self._size, _TOP + cell[0] * self._size
        square = draw_square((x, y), self._size, class_, title)
        if not text[0]:
            return square
        return join(square, svg.draw_text((x + self._size / 2, y + self._size / 2 + 4.5), *text))


def draw_square(corner: svg.Point, size: float, class_: str, title: str = "") -> Safe:
    """Return a square with rounded corners and a margin of 1."""
    x, y = corner
    return svg.draw_rectangle((x + 1, y + 1), (size - 2, size - 2), class_, title)
