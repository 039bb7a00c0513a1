from __future__ import annotations

import re
import warnings
from xml.etree import ElementTree as ET

import pytest

from recbias.reports.plots.drawing.canvas import Canvas
from recbias.reports.plots.drawing.colours import INK, SERIES
from recbias.reports.plots.drawing.picture import Picture
from support.picture_rows import texts
from support.run_folders import HOSTILE


def drawn(label: str = "price=$x_1$", name: str = "one") -> Picture:
    sheet = Canvas(480, 100)
    sheet.dots([(10, 20), (30, 40)], SERIES[0], "o", gid="dot-0", words=f"{label}: 0.5")
    sheet.text((10, 60), label)
    return sheet.picture(name=name, title=f"T {label}", caption=f"C {label}")


@pytest.mark.parametrize("label", [*HOSTILE, "$$", "$\\frac{1}{0}$", "女性", "]]>", "a -- b"])
def test_labels_are_letters_and_nothing_else(label: str) -> None:
    picture = drawn(label)
    assert texts(picture) == [" ".join(label.split())]
    for text in (picture.document(), picture.inline()):
        assert "<script" not in text
        ET.fromstring(text)


def test_it_is_the_same_each_time() -> None:
    first, second = drawn(), drawn()
    assert first.document() == second.document()
    assert first.pdf() == second.pdf()
    assert not re.search(r"matplotlib|20[0-9]{2}-", first.document())


def test_settings_of_a_user_change_nothing() -> None:
    import matplotlib as mpl

    usual = drawn().document()
    with mpl.rc_context({"svg.fonttype": "path", "lines.linewidth": 9, "text.color": "red"}):
        assert drawn().document() == usual


def test_two_pictures_share_no_identifier() -> None:
    one, two = (set(re.findall(r'id="([^"]+)"', drawn(name=each).inline())) for each in "ab")
    assert one
    assert not one & two


def test_what_is_referred_to_is_there() -> None:
    text = drawn().document()
    ids = set(re.findall(r' id="([^"]+)"', text))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= ids
    assert "url(" not in text
    assert "<style" not in text


def test_a_page_has_colours_by_name_and_a_file_has_them_plain() -> None:
    picture = drawn("#0072b2")
    assert f"var(--picture-series-0, {SERIES[0]})" in picture.inline()
    assert f"var(--picture-ink, {INK})" in picture.inline()
    assert "var(" not in picture.document()
    assert texts(picture) == ["#0072b2"]
    assert ">#0072b2</text>" in picture.inline()


def test_it_can_be_heard() -> None:
    picture = drawn()
    root = ET.fromstring(picture.document())
    assert root.findtext("{*}title") == picture.title
    assert root.findtext("{*}desc") == picture.caption
    assert 'role="img"' in picture.inline()
    assert f'aria-label="{picture.title}. {picture.caption}"' in picture.inline()


def test_print_has_its_fonts_and_no_date() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = drawn("🦊 女性").pdf()
    assert b"/FontFile2" in written
    assert b"CreationDate" not in written
