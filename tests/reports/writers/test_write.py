from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from recbias.core.errors import MissingRun, UnknownName, Unwritable
from recbias.reports.writers.write import FORMATS, write_reports
from support.picture_rows import make_shares, write_run
from support.run_folders import HOSTILE, RunSpec, make_run
from support.search_rows import write_search_run


def names(folder: Path, written: list[Path]) -> set[str]:
    assert all(path.is_file() for path in written)
    return {path.relative_to(folder).as_posix() for path in written}


@pytest.mark.parametrize(
    ("formats", "some", "none"),
    [
        (["json"], {"report.json"}, {"report.md", "figures/long-tail.svg"}),
        (["md"], {"report.md", "figures/long-tail.svg"}, {"report.html"}),
        (["html"], {"report.html", "figures/accuracy-popularity.svg"}, {"report.json"}),
        (["latex"], {"tables/summary.tex", "figures/significance-ndcg-10.svg"}, {"report.md"}),
        (["csv"], set(), {"report.json", "report.md", "report.html"}),
        ([], set(), {"report.json"}),
    ],
)
def test_each_format_writes_its_files(
    tmp_path: Path, formats: list[str], some: set[str], none: set[str]
) -> None:
    found = names(tmp_path, write_reports(make_run(tmp_path), formats=formats))
    assert some <= found
    assert not none & found


def test_nothing_unfinished_is_left(tmp_path: Path) -> None:
    before = {each.name for each in make_run(tmp_path).iterdir()}
    write_reports(tmp_path, formats=FORMATS)
    made = {each.name for each in tmp_path.rglob("*") if each.is_file()}
    assert not [each for each in made if each.endswith(".part")]
    assert before <= made


def test_written_again_it_is_the_same(tmp_path: Path) -> None:
    first = {
        each: each.read_bytes() for each in write_reports(make_run(tmp_path), formats=FORMATS)
    }
    second = write_reports(tmp_path, formats=FORMATS)
    assert {each: each.read_bytes() for each in second} == first


def test_a_reference_writes_its_table(tmp_path: Path) -> None:
    make_run(tmp_path)
    found = names(tmp_path, write_reports(tmp_path, formats=["latex"], reference="children/a3"))
    assert {"reference.csv", "tables/reference.tex"} <= found
    frame = pd.read_csv(tmp_path / "reference.csv")
    assert set(frame["system"]) == {"Random", "MostPop", "ItemKNN", "UserKNN", "PureSVD"}


def test_hostile_labels_leave_every_file_whole(tmp_path: Path) -> None:
    parts = (("race=<b>", "price=$"),)
    failed = [{"stage": "fit <x>", "message": "no /home/ann/x.csv", "traceback": "/home/ann/y.py"}]
    make_run(tmp_path, RunSpec(models=HOSTILE, parts=parts, failures=failed, datasets=("a|<b>",)))
    spec = "queries: {name: table, path: /home/ann/q.csv}\nsplit: {test: /home/ann/t.csv}\n"
    (tmp_path / "spec.yaml").write_text(spec, encoding="utf-8")
    for path in write_reports(tmp_path, formats=FORMATS):
        if path.suffix == ".pdf":
            continue
        text = path.read_text(encoding="utf-8")
        assert "<script>alert" not in text or path.suffix == ".json"
        assert "/home/ann" not in text
        if path.suffix == ".svg":
            ET.fromstring(text)
        elif path.suffix == ".json":
            json.loads(text)


def test_an_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no report format is called 'htm'") as caught:
        write_reports(make_run(tmp_path), formats=["htm"])
    assert caught.value.remedy == "did you mean html?"


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingRun):
        write_reports(tmp_path, formats=["md"])


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    make_run(tmp_path)
    (tmp_path / "figures").write_text("in the way", encoding="utf-8")
    with pytest.raises(Unwritable, match="cannot be written"):
        write_reports(tmp_path, formats=["md"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_leaves_the_report_that_was_there(tmp_path: Path) -> None:
    make_run(tmp_path)
    (tmp_path / "report.json").write_text("old", encoding="utf-8")
    (tmp_path / f".report.json.{os.getpid()}.part").symlink_to("/dev/full")
    with pytest.raises(Unwritable, match="No space left"):
        write_reports(tmp_path, formats=["json"])
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == "old"


def test_a_run_of_which_everything_failed_is_reported(tmp_path: Path) -> None:
    failed = [{"stage": "fit X", "model": "X", "message": "boom", "help": "", "traceback": "t"}]
    make_run(tmp_path, RunSpec(significance=False, lists=False, failures=failed))
    header = (tmp_path / "metrics.csv").read_text(encoding="utf-8").partition("\n")[0]
    (tmp_path / "metrics.csv").write_text(f"{header}\n", encoding="utf-8")
    write_reports(tmp_path, formats=FORMATS, reference="children/a3")
    assert "fit X failed: boom" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_pictures_for_print_come_with_latex_only(tmp_path: Path) -> None:
    write_run(tmp_path, [make_shares()])
    assert not [
        each for each in write_reports(tmp_path, formats=["html"]) if each.suffix == ".pdf"
    ]
    found = names(tmp_path, write_reports(tmp_path, formats=["latex"]))
    assert "figures/levels-race.pdf" in found
    assert (tmp_path / "figures/levels-race.pdf").read_bytes().startswith(b"%PDF")


def test_no_drawing_or_template_library_is_imported() -> None:
    code = (
        "import sys, recbias.reports.writers.write; "
        "print([m for m in ('matplotlib', 'jinja2', 'torch', 'rich', 'sklearn', 'scipy.stats') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_figures_of_searches_are_files(tmp_path: Path) -> None:
    written = write_reports(write_search_run(tmp_path).folder, formats=["md"])
    assert {"search-slim.svg", "importance-slim.svg"} <= {each.name for each in written}
