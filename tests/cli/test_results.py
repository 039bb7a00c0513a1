from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.commands import inside, recbias


@pytest.fixture
def results(finished: Path, tmp_path: Path) -> Path:
    """A copy of finished runs, to write to."""
    shutil.copytree(finished / "results", tmp_path / "results", symlinks=True)
    return tmp_path


def test_reports_are_written_again(results: Path) -> None:
    run = results / "results" / "one" / "latest"
    (run / "report.json").unlink()
    said = recbias("report", "one", "--format", "md,html,json", folder=results)
    assert said.code == 0, said.err
    for name in ("report.md", "report.html", "report.json"):
        assert (run / name).is_file()
        assert name in said.out


def test_a_report_beside_published_figures(results: Path) -> None:
    said = recbias(
        "report", "one", "--format", "csv", "--reference", "children/A.3", folder=results
    )
    assert said.code == 0, said.err
    table = (results / "results" / "one" / "latest" / "reference.csv").read_text()
    assert table.startswith("table,system,metric,k,published,published_std,measured,difference")
    assert "children/a3,MostPop,nDCG,10,0.1622" in table


@pytest.mark.parametrize(
    ("words", "said_of_it"),
    [
        (("report", "none"), "neither a run folder nor"),
        (("report", "one", "--format", "pdf"), "no format is called 'pdf'"),
        (("report", "one", "--reference", "children/a99"), "children/a99"),
        (("compare", "one"), "nothing to compare a single run with"),
        (("compare", "one", "alone"), "share no figure"),
        (("compare", "one", "two", "--correction", "holms"), "no correction is called 'holms'"),
        (("compare", "one", "--reference", "wok/1"), "no figures that a run could have"),
        (("compare", "one", "--reference", "children/a7"), "no model and metric of one stand in"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    finished: Path, words: tuple[str, ...], said_of_it: str
) -> None:
    said = inside(*words, folder=finished)
    assert said.code == 2, said.out
    assert said_of_it in said.err
    assert "help: " in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("compare", "one", "two"), 0),
        (("compare", "one", "two", "--fail-over", "0"), 3),
        (("compare", "one", "two", "--fail-over", "1"), 0),
        (("compare", "one", "results/one/latest", "--fail-over", "0"), 0),
        (("compare", "one", "--reference", "children/a3"), 0),
        (("compare", "one", "--reference", "children/a3", "--fail-over", "0.0001"), 3),
    ],
)
def test_runs_are_compared_and_tolerance_decides_the_exit(
    finished: Path, words: tuple[str, ...], code: int
) -> None:
    said = inside(*words, folder=finished)
    assert said.code == code, said.err
    assert "nDCG" in said.out


@pytest.mark.parametrize(
    "words", [("report", "one", "--tolerance", "-1"), ("compare", "one", "--fail-over", "-1")]
)
def test_a_tolerance_below_zero_is_refused(finished: Path, words: tuple[str, ...]) -> None:
    said = inside(*words, folder=finished)
    assert said.code == 2
    assert words[2] in said.err


def test_the_exit_of_a_difference_says_how_large_it_is(finished: Path) -> None:
    said = recbias("compare", "one", "two", "--fail-over", "0", folder=finished)
    assert said.code == 3
    assert said.err.startswith("the largest difference is 0.")
    assert said.err.endswith(", more than 0.0\n")
