from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from recbias.cli.results import find_run, parse_formats
from recbias.core.errors import MissingRun, UnknownName
from support.commands import invoke_recbias, run_recbias


@pytest.fixture
def results(finished_runs: Path, tmp_path: Path) -> Path:
    """Return a writable copy of the finished runs."""
    shutil.copytree(finished_runs / "results", tmp_path / "results", symlinks=True)
    return tmp_path


def test_report_writes_the_named_formats_again(results: Path) -> None:
    run = results / "results" / "one" / "latest"
    (run / "report.json").unlink()
    result = run_recbias("report", "one", "--format", "md,html,json", folder=results)
    assert result.code == 0, result.err
    for name in ("report.md", "report.html", "report.json"):
        assert (run / name).is_file()
        assert name in result.out


def test_report_compares_with_published_values(results: Path) -> None:
    result = run_recbias(
        "report", "one", "--format", "csv", "--reference", "children/A.3", folder=results
    )
    assert result.code == 0, result.err
    table = (results / "results" / "one" / "latest" / "reference.csv").read_text()
    assert table.startswith("table,system,metric,k,published,published_std,measured,difference")
    assert "children/a3,MostPop,nDCG,10,0.1622" in table


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report", "none"), "neither a run folder nor"),
        (("report", "one", "--format", "pdf"), "no format is called 'pdf'"),
        (("report", "one", "--reference", "children/a99"), "children/a99"),
        (("compare", "one"), "a single run cannot be compared"),
        (("compare", "one", "alone"), "share no metric value"),
        (("compare", "one", "two", "--correction", "holms"), "no correction is called 'holms'"),
        (("compare", "one", "--reference", "wok/1"), "no figures that a run could have"),
        (
            ("compare", "one", "--reference", "children/a7"),
            "children/a7 has no value for any model and metric of one",
        ),
    ],
)
def test_invalid_report_or_comparison_is_a_user_error(
    finished_runs: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = invoke_recbias(*arguments, folder=finished_runs)
    assert result.code == 2, result.out
    assert message in result.err
    assert "help: " in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("compare", "one", "two"), 0),
        (("compare", "one", "two", "--fail-over", "0"), 3),
        (("compare", "one", "two", "--fail-over", "1"), 0),
        (("compare", "one", "results/one/latest", "--fail-over", "0"), 0),
        (("compare", "one", "--reference", "children/a3"), 0),
        (("compare", "one", "--reference", "children/a3", "--fail-over", "0.0001"), 3),
    ],
)
def test_exit_code_depends_on_the_tolerance(
    finished_runs: Path, arguments: tuple[str, ...], code: int
) -> None:
    result = invoke_recbias(*arguments, folder=finished_runs)
    assert result.code == code, result.err
    assert result.out


@pytest.mark.parametrize(
    "arguments", [("report", "one", "--tolerance", "-1"), ("compare", "one", "--fail-over", "-1")]
)
def test_negative_tolerance_is_rejected(finished_runs: Path, arguments: tuple[str, ...]) -> None:
    result = invoke_recbias(*arguments, folder=finished_runs)
    assert result.code == 2
    assert arguments[2] in result.err


def test_exceeded_tolerance_names_the_metric_and_the_model(finished_runs: Path) -> None:
    result = run_recbias("compare", "one", "two", "--fail-over", "0", folder=finished_runs)
    assert result.code == 3
    first, *_ = result.err.splitlines()
    assert first.startswith("out of tolerance: nDCG@10 of ItemKNN is 0.")
    assert first.endswith(", more than 0")


def test_run_is_found_by_folder_or_experiment(finished_runs: Path) -> None:
    out = finished_runs / "results"
    latest = (out / "one" / "latest").resolve()
    assert find_run("one", out) == latest
    assert find_run(str(latest), Path("elsewhere")) == latest
    assert find_run(str(out / "one"), Path("elsewhere")) == latest


def test_unknown_run_suggests_the_nearest(finished_runs: Path) -> None:
    with pytest.raises(MissingRun, match="neither a run folder nor") as caught:
        find_run("tow", finished_runs / "results")
    assert caught.value.remedy == "did you mean two?"


@pytest.mark.parametrize("text", ["md,html", " md , html ", "md,html,"])
def test_formats_are_separated_by_commas(text: str) -> None:
    assert parse_formats(text) == ["md", "html"]


def test_unknown_format_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no format is called 'htlm'") as caught:
        parse_formats("md,htlm")
    assert caught.value.remedy == "did you mean html?"
