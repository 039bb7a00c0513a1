"""The figures of a run as objects and as files: SVG, PDF and PNG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from recbias.core.errors import OutOfRange
from recbias.core.files import to_local_path
from recbias.core.packages import CONVERTER, require_packages
from recbias.reports.render import Content

_SCALE = 3  # a PNG has about 300 pixels an inch


IMAGES = ("pdf", "png")
"""The formats that figures are converted to."""


def convert_svg(svg: str, image: str) -> bytes:
    """Return a figure as ``pdf`` or ``png``.

    Raises:
        MissingExtra: The package that converts figures is not installed.
    """
    require_packages("a figure as PDF or PNG", CONVERTER)
    import vl_convert

    svg = _STYLE.sub(lambda match: simplify_style(match[0]), svg, count=1)
    if image == "pdf":
        return bytes(vl_convert.svg_to_pdf(svg))
    return bytes(vl_convert.svg_to_png(svg, scale=_SCALE))


_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_DARK = re.compile(r"@media.*(?=</style>)", re.DOTALL)
_ANY_OF = re.compile(r"([^{}<>]*):is\(([^()]*)\)([^{}]*)(?=\{)")
_COLOUR = re.compile(r"\.fig (\.c\d) (\{[^}]*\})")


def simplify_style(style: str) -> str:
    """Return the style sheet in the selectors that the converter knows: no :is() and no :not().

    >>> simplify_style("<style>.fig :is(.dot, text).c0 { fill: red; }</style>")
    '<style>.fig .dot.c0, .fig text.c0 { fill: red; }</style>'
    """
    style = _ANY_OF.sub(
        lambda match: (
            ", ".join(
                f"{match[1].strip()} {part}{match[3].strip()}" for part in match[2].split(", ")
            )
            + " "
        ),
        _DARK.sub("", style),
    )
    open_dots = " ".join(f".fig .dot.open{name} {rule}" for name, rule in _COLOUR.findall(style))
    return style.replace(":not(.open, .cloud)", "").replace("</style>", f"{open_dots}</style>")


@dataclass(frozen=True)
class Figure:
    """A figure of a run; a notebook shows it.

    Args:
        name: The name of its file without the suffix.
        title: What it shows.
        caption: How to read it.
        svg: The figure as an SVG document.
    """

    name: str
    title: str
    caption: str
    svg: str = field(repr=False)

    def save(self, path: Path | str) -> Path:
        """Write the figure and return the path; its suffix is ``.svg``, ``.pdf`` or ``.png``.

        Raises:
            OutOfRange: Another suffix.
            MissingExtra: PDF and PNG need ``recbias[figures]``.
        """
        target = to_local_path(path)
        image = target.suffix.lower().removeprefix(".")
        if image not in {"svg", *IMAGES}:
            message = f"a figure cannot be written as {target.name!r}"
            raise OutOfRange(message, remedy="end the name in .svg, .pdf or .png")
        target.write_bytes(self.svg.encode() if image == "svg" else convert_svg(self.svg, image))
        return target

    def _repr_svg_(self) -> str:
        """Return the figure for a notebook."""
        return self.svg


def list_figures(content: Content) -> Iterator[Figure]:
    """Yield the figures of a run: the first picture of its page, then the others."""
    first = [content.first_picture] if content.first_picture else []
    for plot in (*first, *content.plots):
        yield Figure(plot.name, plot.title, plot.caption, str(plot.document()))
