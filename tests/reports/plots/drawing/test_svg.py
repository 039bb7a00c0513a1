from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from recbias.reports import svg
from recbias.reports.svg import FileNames
from recbias.reports.wording import Safe, join
from reports.plots.svg_reading import read_texts
from support.run_folders import HOSTILE


def make_plot(label: str = "label") -> svg.Plot:
    body = join(
        svg.draw_circle((10, 20), 4, "dot c0", f"{label}: 0.5"),
        svg.draw_rectangle((0, 0), (5, 5), "box", label),
        svg.draw_text((10, 60), label),
    )
    return svg.Plot("name", f"T {label}", f"C {label}", 100, body)


def test_document_and_inline_svg_escape_title_and_caption() -> None:
    plot = svg.Plot("f", "<b>", "a & b", 20, Safe("<g></g>"), 10)
    root = ET.fromstring(plot.document())
    assert root.get("viewBox") == "0 0 10 20"
    assert root.findtext("{*}title") == "<b>"
    assert root.findtext("{*}desc") == "a & b"
    assert 'role="img"' in plot.svg
    assert 'aria-label="&lt;b&gt;. a &amp; b"' in plot.svg


@pytest.mark.parametrize("label", [*HOSTILE, "$x_1$", "$\\frac{1}{0}$", "女性", "]]>", "a -- b"])
def test_hostile_labels_are_text(label: str) -> None:
    plot = make_plot(label)
    assert read_texts(plot) == [" ".join(label.split())]
    for text in (plot.document(), plot.svg):
        assert "<script" not in text
        ET.fromstring(text)


@pytest.mark.parametrize(
    ("text", "stem"),
    [("../../etc/passwd", "etc-passwd"), ("nDCG@10", "ndcg-10"), ("🦊", "figure"), ("", "figure")],
)
def test_file_names_are_plain(text: str, stem: str) -> None:
    assert FileNames().free(text) == stem
