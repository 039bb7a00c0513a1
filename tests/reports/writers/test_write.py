from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from recbias.core.errors import UnknownName, Unwritable
from recbias.reports.write import FORMATS, write_reports
from support.run_folders import HOSTILE, RunSpec, make_run


def list_names(folder: Path, paths: list[Path]) -> set[str]:
    assert all(path.is_file() for path in paths)
    return {path.relative_to(folder).as_posix() for path in paths}


@pytest.mark.parametrize(
    ("formats", "present", "absent"),
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
    tmp_path: Path, formats: list[str], present: set[str], absent: set[str]
) -> None:
    names = list_names(tmp_path, write_reports(make_run(tmp_path), formats=formats))
    assert present <= names
    assert not absent & names


def test_no_temporary_file_remains(tmp_path: Path) -> None:
    before = {path.name for path in make_run(tmp_path).iterdir()}
    write_reports(tmp_path, formats=FORMATS)
    after = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert not [name for name in after if name.endswith(".part")]
    assert before <= after


def test_reports_that_are_written_twice_are_identical(tmp_path: Path) -> None:
    make_run(tmp_path)
    contents = [
        {path: path.read_bytes() for path in write_reports(tmp_path, formats=FORMATS)}
        for _ in range(2)
    ]
    assert contents[0] == contents[1]


def test_a_published_table_adds_its_comparison(tmp_path: Path) -> None:
    make_run(tmp_path)
    names = list_names(
        tmp_path, write_reports(tmp_path, formats=["latex"], reference="children/a3")
    )
    assert {"reference.csv", "tables/reference.tex"} <= names
    frame = pd.read_csv(tmp_path / "reference.csv")
    assert set(frame["system"]) == {"Random", "MostPop", "ItemKNN", "UserKNN", "PureSVD"}


def test_hostile_labels_do_not_break_any_file(tmp_path: Path) -> None:
    parts = (("race=<b>", "price=$"),)
    failures = [
        {"stage": "fit <x>", "message": "no /home/ann/x.csv", "traceback": "/home/ann/y.py"}
    ]
    make_run(
        tmp_path, RunSpec(models=HOSTILE, parts=parts, failures=failures, datasets=("a|<b>",))
    )
    spec = "queries: {name: table, path: /home/ann/q.csv}\nsplit: {test: /home/ann/t.csv}\n"
    (tmp_path / "spec.yaml").write_text(spec, encoding="utf-8")
    for path in write_reports(tmp_path, formats=FORMATS):
        text = path.read_text(encoding="utf-8")
        assert "<script>alert" not in text or path.suffix == ".json"
        assert "/home/ann" not in text
        if path.suffix == ".svg":
            ET.fromstring(text)
        elif path.suffix == ".json":
            json.loads(text)


def test_the_error_for_an_unknown_format_suggests_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no report format is called 'htm'") as caught:
        write_reports(make_run(tmp_path), formats=["htm"])
    assert caught.value.remedy == "did you mean html?"


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    make_run(tmp_path)
    (tmp_path / "figures").write_text("in the way", encoding="utf-8")
    with pytest.raises(Unwritable, match="cannot be written"):
        write_reports(tmp_path, formats=["md"])


def test_a_full_disk_keeps_the_previous_report(tmp_path: Path) -> None:
    make_run(tmp_path)
    (tmp_path / "report.json").write_text("old", encoding="utf-8")
    names = {path.name for path in tmp_path.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))  # bytes of a file
    try:
        with pytest.raises(Unwritable, match="File too large"):
            write_reports(tmp_path, formats=["json"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "report.json").read_text(encoding="utf-8") == "old"
    assert {path.name for path in tmp_path.iterdir()} == names


def test_importing_the_writer_imports_no_plotting_or_template_library() -> None:
    code = (
        "import sys, recbias.reports.write; "
        "heavy = {'matplotlib', 'jinja2', 'torch', 'rich', 'sklearn', 'scipy.stats'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_linked_folder_of_the_run_is_not_followed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (run / "tables").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unwritable, match="link to another folder") as caught:
        write_reports(run, formats=["latex"])
    assert caught.value.remedy == "remove the link"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_linked_report_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (tmp_path / "kept.json").write_text("kept")
    (run / "report.json").symlink_to(tmp_path / "kept.json")
    write_reports(run, formats=["json"])
    assert not (run / "report.json").is_symlink()
    assert (tmp_path / "kept.json").read_text() == "kept"
