from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from recbias.reports import svg
from recbias.reports.svg import FileNames, estimate_width, shorten, shorten_all
from recbias.reports.wording import Safe, join
from reports.plots.svg_reading import find_elements, read_texts, read_tooltips
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


def test_drawing_twice_gives_equal_bytes() -> None:
    assert make_plot().document() == make_plot().document()


def test_later_elements_lie_above_earlier_ones() -> None:
    document = make_plot().document()
    assert document.index("<circle") < document.index('class="box"') < document.index(">label</t")


def test_elements_have_coordinates_and_tooltips() -> None:
    plot = make_plot()
    assert read_tooltips(plot) == ["label: 0.5", "label"]
    (circle,) = find_elements(plot, "circle")
    assert (circle.get("cx"), circle.get("cy"), circle.get("r")) == ("10", "20", "4")


def test_style_sheet_loads_nothing_and_has_dark_colours() -> None:
    assert "url(" not in svg.read_style_sheet()
    assert "@import" not in svg.read_style_sheet()
    assert "prefers-color-scheme: dark" in svg.read_style_sheet()


def test_lines_differ_by_dashes_when_colours_run_out() -> None:
    assert len({svg.format_colour(series) for series in range(24)}) == 24


def test_labels_are_shortened_to_one_line() -> None:
    assert shorten("abcdefghij", 5) == "ab…ij"
    assert [shorten("abcdefghij", most) for most in (1, 2)] == ["…", "…j"]
    assert shorten("a\nb") == "a b"


def test_shortened_labels_of_versions_stay_distinct() -> None:
    names = ("calibration", "calibrated_popularity", "xQuAD", "MMR", "CPFair")
    strengths = ("0.1", "0.2", "0.5", "0.8", "0.95")
    labels = ["EASE", *(f"EASE + {a}(strength={b})" for a in names for b in strengths)]
    for most in (20, 24):
        texts = shorten_all(labels, most)
        assert max(map(len, texts)) <= most
        assert len({*texts}) == len(labels)
    assert shorten_all(["EASE", "ALS"]) == ["EASE", "ALS"]


def test_broad_characters_are_wider_than_narrow_ones() -> None:
    assert estimate_width("🦊") > estimate_width("W") > estimate_width("a") > estimate_width("i")
    assert estimate_width("abc", 26) == 2 * estimate_width("abc", 13)


@pytest.mark.parametrize(
    ("text", "stem"),
    [("../../etc/passwd", "etc-passwd"), ("nDCG@10", "ndcg-10"), ("🦊", "figure"), ("", "figure")],
)
def test_file_names_are_plain(text: str, stem: str) -> None:
    assert FileNames().free(text) == stem


def test_file_names_are_unique() -> None:
    names = FileNames()
    assert [names.free("a!"), names.free("a?"), names.free("a")] == ["a", "a-2", "a-3"]
