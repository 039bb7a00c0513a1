"""What the elements of a plot's SVG show."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from recbias.reports.svg import Plot, Point

SVG = "{http://www.w3.org/2000/svg}"


def require_plot(plot: Plot | None) -> Plot:
    """Return a plot that must be there."""
    assert plot is not None
    return plot


def find_elements(plot: Plot | None, kind: str, class_: str = "") -> list[ET.Element]:
    """Return the elements of a kind, those that have all classes."""
    root = ET.fromstring(require_plot(plot).document())
    classes = set(class_.split())
    return [
        element
        for element in root.iter(f"{SVG}{kind}")
        if classes <= set(element.get("class", "").split())
    ]


def read_tooltips(plot: Plot | None, kind: str = "") -> list[str]:
    """Return the texts that show on hover, in order; those of one kind of elements if given."""
    root = ET.fromstring(require_plot(plot).document())
    elements = list(root.iter(f"{SVG}{kind}")) if kind else list(root.iter())[1:]
    return list(filter(None, (element.findtext(f"{SVG}title") for element in elements)))


def read_texts(plot: Plot | None) -> list[str]:
    """Return the lines of text, without the notes of axis titles."""
    return [text for text in map(_read_text, find_elements(plot, "text")) if text]


def read_marks(plot: Plot | None, class_: str = "dot") -> list[Point]:
    """Return the centres of the marks, in order."""
    root = ET.fromstring(require_plot(plot).document())
    classes = set(class_.split())
    return [
        _find_centre(element)
        for element in root.iter()
        if element.tag in {f"{SVG}circle", f"{SVG}path"}
        and classes <= set(element.get("class", "").split())
    ]


def find_marks(plot: Plot | None, text: str = "") -> dict[str, Point]:
    """Return the centres of the marks by their tooltips, those that contain a text."""
    root = ET.fromstring(require_plot(plot).document())
    marks = {}
    for element in root.iter():
        title = element.findtext(f"{SVG}title")
        if element.tag in {f"{SVG}circle", f"{SVG}path"} and title and text in title:
            marks[title] = _find_centre(element)
    return marks


def read_points(line: ET.Element) -> list[Point]:
    """Return the points of a polyline."""
    pairs = (pair.split(",") for pair in line.get("points", "").split())
    return [(float(x), float(y)) for x, y in pairs]


def _read_text(element: ET.Element) -> str:
    return element.text or element.findtext(f"{SVG}tspan") or ""


def _find_centre(element: ET.Element) -> Point:
    if element.tag == f"{SVG}circle":
        return float(element.get("cx", "")), float(element.get("cy", ""))
    pairs = re.findall(r"([-\d.]+),([-\d.]+)", element.get("d", ""))
    xs, ys = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    return sum(xs) / len(xs), sum(ys) / len(ys)
