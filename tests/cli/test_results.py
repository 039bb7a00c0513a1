from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import recbias
from support.commands import invoke_recbias


@pytest.fixture
def results(finished_runs: Path, tmp_path: Path) -> Path:
    """Return a writable copy of the finished runs."""
    shutil.copytree(finished_runs / "results", tmp_path / "results", symlinks=True)
    return tmp_path


def test_report_writes_the_named_formats_again(results: Path) -> None:
    run = results / "results" / "one" / "latest"
    (run / "report.json").unlink()
    result = invoke_recbias("report", "one", "--format", "md,html,json", folder=results)
    assert result.code == 0, result.err
    for name in ("report.md", "report.html", "report.json"):
        assert (run / name).is_file()
        assert name in result.out


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


def test_runs_are_listed_newest_first(results: Path) -> None:
    result = invoke_recbias("runs", folder=results)
    assert (result.code, result.err) == (0, "")
    title, head, _, *lines, note = result.out.splitlines()
    assert title == "results: 3 runs, the newest first"
    assert head.split() == ["name", "run", "started", "took", "models"]
    assert note == "Started: UTC. The folder of a run is results/NAME/RUN."
    rows = [line.split() for line in lines]
    assert {row[0] for row in rows} == {"one", "two", "alone"}
    assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True)
    for row in rows:
        assert (results / "results" / row[0] / row[1] / "manifest.json").is_file()
    (alone,) = invoke_recbias("runs", "ALONE", folder=results).out.splitlines()[3:-1]
    assert alone.split()[0] == "alone"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{", "it is not JSON"),
        (b"[]", "it is not a JSON object"),
        (b"\xff", "it is not JSON"),
        (b'{"name": "one"}', "manifest.json is not that of a run (KeyError: 'started')"),
        (b"[" * 100_000, "it is not JSON"),
        (None, "manifest.json does not exist"),
    ],
)
def test_a_damaged_run_is_named_and_left_out(
    results: Path, content: bytes | None, reason: str
) -> None:
    run = (results / "results" / "one" / "latest").resolve()
    manifest = run / "manifest.json"
    if content is None:
        manifest.unlink()
    else:
        manifest.write_bytes(content)
    result = invoke_recbias("runs", folder=results)
    assert result.code == 0
    (warning,) = result.err.splitlines()
    folder = f"results/one/{run.name}"
    assert warning.startswith(f"warning: {folder} is not a whole run and is left out: {reason}")
    assert result.out.startswith("results: 2 runs")
    assert "one" not in result.out.split()
    with pytest.warns(UserWarning, match="is not a whole run and is left out"):
        assert len(recbias.list_runs(results / "results")) == 2
