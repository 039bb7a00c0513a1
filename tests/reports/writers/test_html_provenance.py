from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from recbias.reports.markup import join
from recbias.reports.views.run_tables import read_run
from recbias.reports.writers.html_provenance import making
from support.run_folders import RunSpec, make_run


def parsed(folder: Path, world: RunSpec) -> ET.Element:
    run = read_run(make_run(folder, world))
    return ET.fromstring(f"<root>{join(*making(run))}</root>")


def test_what_is_long_is_folded(tmp_path: Path) -> None:
    root = parsed(tmp_path, RunSpec())
    assert [each.text for each in root.iter("summary")] == [
        *("Stages", "Libraries", "Data files", "Experiment file", "Tests"),
    ]
    assert all(each.get("open") is None for each in root.iter("details"))


def test_stages_and_files_have_their_figures(tmp_path: Path) -> None:
    text = " ".join(parsed(tmp_path, RunSpec()).itertext())
    for said in ("fit EASE", "0.40 s", "300 MB", "ratings.dat", "f" * 64, "numpy", "k_core"):
        assert said in text


def test_a_failure_has_its_traceback(tmp_path: Path) -> None:
    failed = [{"stage": "fit X", "message": "m", "traceback": "Traceback <here>\n  line"}]
    root = parsed(tmp_path, RunSpec(failures=failed))
    assert [each.text for each in root.iter("summary")][-1] == "Tracebacks"
    assert [each.text for each in root.iter("pre")][-1] == "Traceback <here>\n  line"
