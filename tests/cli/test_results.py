from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import recbias
from recbias.reports.run import read_run
from recbias.runs.tables import find_run
from support.commands import invoke_recbias, write_small_spec


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
        (("report", "one", "--format", "doc"), "no report format is called 'doc'"),
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
        (b"{", "it is not the manifest of a run"),
        (b"[]", "it is not the manifest of a run"),
        (b"\xff", "it is not the manifest of a run"),
        (b'{"name": "one"}', "manifest.json is not that of a run (KeyError: 'started')"),
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


def read_value(out: Path, run: str, *, model: str, metric: str) -> float:
    metrics = read_run(find_run(run, out)).metrics
    row = metrics[(metrics["model"] == model) & (metrics["metric"] == metric)].iloc[0]
    return float(row["value"])


def test_runs_are_compared_side_by_side_with_p_values(finished_runs: Path) -> None:
    result = invoke_recbias("compare", "one", "two", folder=finished_runs)
    assert (result.code, result.err) == (0, "")
    title, head, _, *lines = result.out.splitlines()
    # ItemKNN has nDCG and HR in both; the other models did not change
    assert title == "one, two: 2 values (dataset demo, seed 42, fold 1)"
    columns = ["model", "metric", "one", "two", "difference", "95%", "interval", "n", "p", "p"]
    assert head.split() == [*columns, "adjusted", "test"]
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in lines[:2]}
    a, b = (
        read_value(finished_runs / "results", run, model="ItemKNN", metric="nDCG")
        for run in ("one", "two")
    )
    assert rows["ItemKNN", "nDCG@10"][:3] == [f"{a:.4f}", f"{b:.4f}", f"{b - a:.4f}"]
    low, _, high, n, p, adjusted, test = rows["ItemKNN", "HR@10"][3:]
    assert (n, test) == ("60", "paired_t")
    assert float(low) < float(rows["ItemKNN", "HR@10"][2]) < float(high)
    assert 0 < float(p) < float(adjusted) <= 1
    assert lines[2:] == [
        (
            "Difference: the later run minus the earlier one, over the n units that both have. "
            "p adjusted: bonferroni over 2 tests."
        ),
        "Unchanged: 4 values with the same address in both runs.",
        "Excluded: 3 values of two that one lacks.",
    ]


def test_published_and_measured_values_are_compared(finished_runs: Path) -> None:
    result = invoke_recbias("compare", "one", "--reference", "children/a3", folder=finished_runs)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == "one: Comparison with children/a3 (@10)"
    row = next(line.split() for line in lines if line.startswith("MostPop  nDCG "))
    measured = read_value(finished_runs / "results", "one", model="MostPop", metric="nDCG")
    difference = measured - 0.1622
    assert row[2:5] == ["0.1622", f"{measured:.4f}", f"{difference:.4f}"]
    assert row[5:] == [f"{difference / 0.1622:+.1%}", "yes" if abs(difference) <= 0.01 else "no"]
    assert "Within: the difference is at most 0.01." in lines
    assert any("mean_precision" in line for line in lines), (
        "the note on metrics that differ is missing"
    )


def test_spec_stands_for_its_latest_run_and_asks_for_a_pilot(tmp_path: Path) -> None:
    path = write_small_spec(tmp_path)
    result = invoke_recbias("power", path.name, folder=tmp_path)
    assert result.code == 2
    assert result.err.splitlines() == [
        "error: small has no finished run in results, which gives the variance",
        "help: run a pilot: recbias run small.yaml --limit 200",
    ]
    recbias.run(path, out=tmp_path / "results")
    result = invoke_recbias("power", path.name, "--difference", "1e-9", folder=tmp_path)
    assert result.code == 0, result.err
    assert "more than 1,000,000,000" in result.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--difference", "0"), "--difference: must be a number above 0, not 0"),
        (("--difference", "-0.1"), "--difference: must be a number above 0, not -0.1"),
        (("--difference", "nan"), "--difference: must be a number above 0, not nan"),
        (("--power", "1"), "--power: must be a number above alpha and below 1, not 1"),
        (("--alpha", "0"), "--alpha: must be a number above 0 and below 1, not 0"),
        (("--metric", "nDGC"), "--metric: the run has no comparison of the metric 'nDGC'"),
        (("--model", "EASE"), "--model: the run has no comparison of the model 'EASE'"),
    ],
)
def test_impossible_questions_are_refused(
    words: tuple[str, ...], message: str, finished_runs: Path
) -> None:
    result = invoke_recbias("power", "one", *words, folder=finished_runs)
    error, remedy = result.err.splitlines()
    assert (result.code, error) == (2, f"error: {message}")
    assert remedy.startswith("help: ")


ITEMS = "item_id,price,cheap\n" + "".join(f"i{n},{'$' * (n % 4 + 1)},{n % 2}\n" for n in range(12))
PROMPTS = """\
words:
  name:
    - {gender: female, words: [Ann, Eve, Ida]}
    - {gender: male, words: [Bob, Max, Tom]}
templates:
  gifts: ["A gift for [name]", "Please surprise [name]", "What would [name] like?"]
"""


def test_names_and_templates_of_prompts_are_counted(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(ITEMS, encoding="utf-8")
    (tmp_path / "prompts.yaml").write_text(PROMPTS, encoding="utf-8")
    rng = np.random.default_rng(2)
    ids = [
        f"gifts-0{t}:{n}" for t in (1, 2, 3) for n in ("Ann", "Eve", "Ida", "Bob", "Max", "Tom")
    ]
    for model in ("ours", "theirs"):
        rows = [f"{query},{rank},i{item}" for query in ids
                for rank, item in enumerate(rng.permutation(12)[:4], start=1)]  # fmt: skip
        text = "\n".join(["query_id,rank,item_id", *rows]) + "\n"
        (tmp_path / f"{model}.csv").write_text(text, encoding="utf-8")
    spec = {
        "name": "prompts",
        "dataset": {"name": "tables", "items": str(tmp_path / "items.csv")},
        "queries": {"name": "templates", "templates": str(tmp_path / "prompts.yaml")},
        "k": 4,
        "models": [
            {"name": "lists", "label": model, "path": str(tmp_path / f"{model}.csv")}
            for model in ("ours", "theirs")
        ],
        "metrics": [{"name": "REC-ST", "label": "cheap"}],
        "tests": ["paired_t"],
        "report": {"formats": ["csv"]},
    }
    table = recbias.power(recbias.run(spec, out=tmp_path / "results"), 0.5)
    crossed = table[table["given"] != ""]
    counts = crossed[["metric", "between", "unit", "given", "n"]].to_numpy().tolist()
    name, template = ["name", "3 templates", 6], ["template", "6 names", 3]
    assert counts == [["REC-ST(label=cheap)", "models", *unit] for unit in (name, template)]
    assert (crossed["needed"].notna() | (crossed["remark"] != "")).all()


def test_run_without_comparisons_is_refused(tmp_path: Path) -> None:
    path = write_small_spec(tmp_path)
    recbias.run(path, overrides=["tests=[]"], out=tmp_path / "results")
    result = invoke_recbias("power", "small", folder=tmp_path)
    assert result.code == 2
    assert result.err.startswith("error: the run compares neither models nor groups")


def test_no_runs_are_said_and_no_error(tmp_path: Path) -> None:
    result = invoke_recbias("runs", folder=tmp_path)
    message = "results has no finished run: recbias run SPEC writes one\n"
    assert (result.code, result.out, result.err) == (0, message, "")
    result = invoke_recbias("runs", "one", folder=tmp_path)
    assert result.code == 2
    assert result.err == "error: results has no run of 'one'\nhelp: results has no finished run\n"


def test_a_smoke_test_is_named_in_the_list_of_runs(tmp_path: Path) -> None:
    write_small_spec(tmp_path)
    assert invoke_recbias("run", "small.yaml", "--limit", 3, folder=tmp_path).code == 0
    (row,) = invoke_recbias("runs", folder=tmp_path).out.splitlines()[3:-1]
    assert "(--limit 3)" in row
