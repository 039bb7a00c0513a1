from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import recbias
from recbias.cli.compare import find_run, parse_formats
from recbias.core.errors import MissingRun, UnknownName
from support.commands import invoke_recbias
from support.screen import run_in_terminal


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


def test_report_compares_with_published_values(results: Path) -> None:
    result = invoke_recbias(
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
    result = invoke_recbias("compare", "one", "two", "--fail-over", "0", folder=finished_runs)
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


CHECK = {
    **dict.fromkeys(("dataset", "model", "metric", "group", "target", "baseline", "line"), "a"),
    **dict.fromkeys(("value", "ci_low", "ci_high", "k"), None),
    "verdict": "fail",
    "basis": "interval",
    "strict": False,
    "failed": True,
}


def test_runs_fit_a_narrow_terminal(results: Path) -> None:
    path = results / "results" / "one" / "latest" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest |= {"failures": [{}] * 2, "checks": [CHECK] * 12, "seconds": 3605}
    manifest["models"] = [{"label": name} for name in ("Random", "MultiVAE", "EASE", "SLIM")]
    path.write_text(json.dumps(manifest))
    code, screen = run_in_terminal("runs", folder=results, width=80)
    assert code == 0
    assert all(len(line) <= 80 for line in screen.text())
    words = " ".join(screen.text()).replace("Z-", "Z ").split()
    for word in (
        *path.parent.resolve().name.partition("-")[::2],
        "stages,",
        "12",
        "checks",
        "1",
        "h",
        "MultiVAE",
    ):
        assert word in words
    assert "SLIM" not in words


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


def test_no_runs_are_said_and_no_error(tmp_path: Path) -> None:
    result = invoke_recbias("runs", folder=tmp_path)
    message = "results has no finished run: recbias run SPEC writes one\n"
    assert (result.code, result.out, result.err) == (0, message, "")
    result = invoke_recbias("runs", "one", folder=tmp_path)
    assert result.code == 2
    assert result.err == "error: results has no run of 'one'\nhelp: results has no finished run\n"
