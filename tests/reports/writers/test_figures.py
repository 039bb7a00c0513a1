"""Figures as objects and files; PDF and PNG where ``recbias[figures]`` is installed."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import recbias
from recbias.core.errors import Faults, MissingExtra, OutOfRange
from recbias.core.packages import CONVERTER, is_installed
from recbias.reports.svg import read_style_sheet
from recbias.reports.write import write_reports
from support.run_folders import RunSpec, make_run
from support.specs import make_small_spec

WORLD = RunSpec(models=("MostPop", "ItemKNN"), metrics=("nDCG",), users=20)
HAS_CONVERTER = is_installed(CONVERTER)


def test_the_figures_of_a_run_are_those_of_its_reports(tmp_path: Path) -> None:
    run = recbias.Run(make_run(tmp_path, WORLD))
    write_reports(run.folder, formats=["md"])
    files = {path.stem: path.read_text() for path in (tmp_path / "figures").iterdir()}
    assert {name: figure.svg for name, figure in run.figures.items()} == files
    figure = run.figures["long-tail"]
    path = figure.save(tmp_path / "x.svg")
    assert ET.fromstring(path.read_text()).tag.endswith("svg")
    with pytest.raises(OutOfRange, match=r"cannot be written as 'x\.jpg'"):
        figure.save(tmp_path / "x.jpg")


def test_the_converter_gets_the_selectors_that_it_knows() -> None:
    assert not re.search(r":(is|not|has)\(", read_style_sheet())


@pytest.mark.skipif(not HAS_CONVERTER, reason=f"{CONVERTER} is not installed")
def test_figures_are_written_as_pdf_and_png(tmp_path: Path) -> None:
    paths = write_reports(make_run(tmp_path, WORLD), formats=["pdf", "png"])
    first = {path.name: path.read_bytes()[:4] for path in paths}
    assert {"long-tail.pdf", "long-tail.png", "long-tail.svg"} <= set(first)
    assert {start for name, start in first.items() if name.endswith(".pdf")} == {b"%PDF"}
    assert {start for name, start in first.items() if name.endswith(".png")} == {b"\x89PNG"}


@pytest.mark.skipif(HAS_CONVERTER, reason=f"{CONVERTER} is installed")
def test_without_the_extra_it_is_named_before_any_work(tmp_path: Path) -> None:
    spec = make_small_spec(report={"formats": ["csv", "pdf"]})
    with pytest.raises((Faults, MissingExtra)) as caught:
        recbias.plan(spec, out=tmp_path)
    assert "report.formats" in str(caught.value)
    with pytest.raises(MissingExtra) as missing:
        recbias.Run(make_run(tmp_path, WORLD)).figures["long-tail"].save(tmp_path / "x.pdf")
    assert missing.value.remedy == "in the clone: pip install '.[figures]'"
