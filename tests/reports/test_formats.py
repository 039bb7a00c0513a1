from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recbias.core.errors import Unwritable
from recbias.reports.gallery import IMAGES
from recbias.reports.render import (
    Content,
    escape_latex,
    render_json,
    render_latex,
    render_markdown,
)
from recbias.reports.run import read_run
from recbias.reports.wording import (
    Cell,
    Column,
    Table,
    list_warnings,
    state_cutoff_once,
)
from recbias.reports.write import FORMATS, write_reports
from support.run_folders import HOSTILE, RunSpec, make_run

TEXTS = [name for name in FORMATS if name not in IMAGES]  # without an extra


def list_names(folder: Path, paths: list[Path]) -> set[str]:
    assert all(path.is_file() for path in paths)
    return {path.relative_to(folder).as_posix() for path in paths}


@pytest.mark.parametrize(
    ("formats", "present", "absent"),
    [
        (["json"], {"report.json"}, {"report.md", "figures/long-tail.svg"}),
        (["md"], {"report.md", "figures/long-tail.svg"}, {"report.html"}),
        (["html"], {"report.html", "figures/accuracy-popularity.svg"}, {"report.json"}),
        (["latex"], {"tables/summary.tex", "figures/answer.svg"}, {"report.md"}),
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
    for path in write_reports(tmp_path, formats=TEXTS):
        text = path.read_text(encoding="utf-8")
        assert "<script>alert" not in text or path.suffix == ".json"
        assert "/home/ann" not in text
        if path.suffix == ".svg":
            ET.fromstring(text)
        elif path.suffix == ".json":
            json.loads(text)


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


def test_a_foreign_run_cannot_let_its_report_be_written_elsewhere(tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    run.mkdir()
    other.mkdir()
    make_run(run)
    (run / "tables").symlink_to(other)
    with pytest.raises(Unwritable, match="link to another folder"):
        write_reports(run, formats=["latex"])
    assert not [*other.iterdir()]


def test_importing_the_writer_imports_no_plotting_or_template_library() -> None:
    code = (
        "import sys, recbias.reports.write; "
        "heavy = {'matplotlib', 'jinja2', 'torch', 'rich', 'sklearn', 'scipy.stats'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def render_report(folder: Path, world: RunSpec) -> str:
    return render_markdown(Content(read_run(make_run(folder, world))))


def test_the_report_has_every_section(tmp_path: Path) -> None:
    text = render_report(tmp_path, RunSpec())
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        *(
            "All conclusions",
            "Data and settings",
            "Results (@10)",
            "Agreement of the metrics (@10)",
            "Plots",
        ),
        *("Significance", "Definitions", "Models", "Provenance"),
    ]
    assert "](figures/accuracy-popularity.svg)" in text
    assert "| Random | MostPop |" in text
    assert "\n- Queries: 5,949 users (where age < 18)\n" in text.replace("&lt;", "<")


@given(st.text())
def test_no_text_can_open_a_group_or_a_command(text: str) -> None:
    latex = str(escape_latex(text))
    for command in (r"\textbackslash{}", r"\textasciitilde{}", r"\textasciicircum{}"):
        latex = latex.replace(command, "")
    latex = re.sub(r"^\{([\[*])\}", r"\1", latex)
    latex = re.sub(r"\\(text(less|greater|bar)|char34)\{\}", "", latex)
    assert not re.search(r"(?<!\\)[&%$#_{}~^]", latex)


def test_cells_are_no_settings_of_the_break_before_them() -> None:
    rows = tuple((Cell(text), Cell("[1990, 2000]")) for text in ("[v1]", "*star"))
    latex = render_latex(Table("T", (Column("model"), Column("year")), rows))
    assert not re.search(r"(\\\\|rule)\s*[\[*]", latex)
    assert "{*}star & {[}1990, 2000] " in latex


def test_tables_of_metrics_with_similar_names_have_labels_of_their_own(tmp_path: Path) -> None:
    metrics = ("a b", "a_b", "a&b")
    run = make_run(tmp_path, RunSpec(metrics=metrics, parts=[("gender=F", "")]))
    write_reports(run, formats=["latex"])
    texts = (path.read_text(encoding="utf-8") for path in (run / "tables").glob("*.tex"))
    labels = re.findall(r"\\label\{tab:(a-b.*)\}", "".join(texts))
    assert len(labels) == len({*labels}) == 3


METRIC = Column("nDCG@10", numeric=True, direction="higher", key="nDCG@10", family="accuracy")


def test_a_table_has_rules_the_best_and_second_best_marks_and_notes() -> None:
    table = Table(
        "Results & more",
        (Column("model"), METRIC),
        (
            (Cell("a_b", mark="a"), Cell("0.3000", 0.3, best=True, mark="b")),
            (Cell("c"), Cell("-0.1000", -0.1, second=True)),
        ),
        ("50% of them",),
    )
    latex = render_latex(state_cutoff_once(table))
    assert "\\caption{Results \\& more (@10)}\n\\label{tab:results-more}\n" in latex
    assert r"\begin{tabular}{lr}" in latex
    assert r"model & nDCG $\uparrow$ \\" in latex
    assert r"a\_b\textsuperscript{a} & \textbf{0.3000}\textsuperscript{b} \\" in latex
    assert r"c & \underline{$-$0.1000} \\" in latex
    assert r"50\% of them" in latex
    assert [latex.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1] * 3


def test_a_family_of_two_tables_has_two_labels() -> None:
    columns = [replace(METRIC, title=f"m{at}@5", key=f"m{at}") for at in range(9)]
    table = Table("T", (Column("model"), *columns), ((Cell("a"), *[Cell("1", 1.0)] * 9),))
    labels = re.findall(r"\\label\{tab:(.*)\}", render_latex(table))
    assert labels == ["t-accuracy", "t-accuracy-part-2"]


def test_a_wide_table_is_split_by_families_into_tables_of_at_most_eight_columns() -> None:
    families = ["accuracy"] * 3 + ["popularity"] * 3 + ["exposure"] * 2 + ["popularity"] + [""] * 9
    columns = tuple(
        Column(f"m{at}", numeric=True, key=f"m{at}", family=family)
        for at, family in enumerate(families)
    )
    table = Table("T", (Column("model"), *columns), ((Cell("a"), *[Cell("1", 1.0)] * 18),))
    latex = render_latex(table)
    captions = ["T: accuracy, popularity", "T: exposure", "T: part 3", "T: part 4"]
    assert re.findall(r"\\caption\{(.*)\}", latex) == captions
    rows = [line for line in latex.splitlines() if line.startswith("a & ")]
    assert [row.count("&") for row in rows] == [7, 2, 7, 2]


def parse_strictly(text: str) -> dict[str, Any]:
    """Parse JSON that must not hold NaN or infinity."""

    def refuse_constant(constant: str) -> None:
        raise AssertionError(constant)

    report: dict[str, Any] = json.loads(text, parse_constant=refuse_constant)
    return report


def test_the_report_holds_all_tables_and_no_nan(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path, RunSpec(models=HOSTILE, folds=2, users=20)))
    report = parse_strictly(render_json(run))
    assert report["schema_version"] == 1
    assert list(report) == [
        *("schema_version", "verdict", "conclusions", "metrics", "significance", "trials"),
        *("importances", "reference", "checks", "definitions", "manifest"),
    ]
    assert [row["model"] for row in report["metrics"]] == run.metrics["model"].tolist()
    assert report["metrics"][-1]["ci_low"] is None  # a mean over folds has no interval here
    assert {row["significant"] for row in report["significance"]} <= {True, False}
    assert report["reference"] is None
    assert report["manifest"] == run.manifest


@pytest.mark.parametrize(
    ("warnings", "lines"),
    [
        (["w", "v", "w"], ["w", "v"]),
        (
            ["measure a of X: 3 lost", "measure a of Y: 3 lost", "measure a of Y: 2 lost"],
            ["3 lost", "measure a of Y: 2 lost"],
        ),
    ],
)
def test_a_warning_of_several_stages_is_listed_once(
    tmp_path: Path, warnings: list[str], lines: list[str]
) -> None:
    assert list_warnings(read_run(make_run(tmp_path, RunSpec(warnings=warnings)))) == lines


def test_a_run_in_which_every_stage_failed_is_reported(tmp_path: Path) -> None:
    failures = [{"stage": "fit X", "model": "X", "message": "boom", "help": "", "traceback": "t"}]
    make_run(tmp_path, RunSpec(significance=False, lists=False, failures=failures))
    header = (tmp_path / "metrics.csv").read_text(encoding="utf-8").partition("\n")[0]
    (tmp_path / "metrics.csv").write_text(f"{header}\n", encoding="utf-8")
    write_reports(tmp_path, formats=TEXTS, reference="children/a3")
    assert "fit X failed: boom" in (tmp_path / "report.md").read_text(encoding="utf-8")
