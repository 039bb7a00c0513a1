from __future__ import annotations

import re
from pathlib import Path

import pytest

from recbias.core.context import Failure, StageRecord
from recbias.progress import Plain
from recbias.runner.remaining import RemainingWork
from recbias.runner.stage import Keys, Stage
from support.screen import Screen, run_in_terminal

FIT = StageRecord(
    *("fit ItemKNN", "fit", "0" * 64),
    dataset="demo",
    seed=42,
    fold=1,
    model="ItemKNN",
    seconds=1.234,
    peak_memory_mb=1500.4,
)

SPEC = """\
name: seen
dataset: {name: demo, n_users: 60, n_items: 50}
split: {name: random, test: 0.2}
k: 5
models:
  - MostPop
  - {name: ItemKNN, label: "[b]x[/b]"}
metrics: [nDCG, log_popularity_difference, ItemCoverage, Gini, Entropy]
tests: [paired_t]
report: {formats: [csv]}
"""


def create_record(**changes: object) -> StageRecord:
    return StageRecord(**{**vars(FIT), **changes})


@pytest.mark.parametrize(
    ("record", "verbose", "lines"),
    [
        (FIT, False, ["fit ItemKNN [demo, seed 42]: 1.23 s, 1,500 MB"]),
        (
            create_record(resumed_seconds=0.5),
            False,
            ["fit ItemKNN [demo, seed 42]: 1.23 s (0.50 s of it in an earlier run), 1,500 MB"],
        ),
        (create_record(fold=2), False, ["fit ItemKNN [demo, seed 42, fold 2]: 1.23 s, 1,500 MB"]),
        (create_record(kind="dataset"), False, ["fit ItemKNN [demo]: 1.23 s, 1,500 MB"]),
        (create_record(reused=True), False, []),
        (create_record(reused=True), True, ["fit ItemKNN [demo, seed 42]: cached"]),
        (create_record(kind="measure"), False, []),
        (create_record(kind="measure"), True, ["fit ItemKNN [demo, seed 42]: 1.23 s, 1,500 MB"]),
        (
            create_record(kind="measure", failure=Failure("no [b]memory[/b]")),
            False,
            ["fit ItemKNN [demo, seed 42]: failed: no [b]memory[/b]"],
        ),
        (
            create_record(reused=True, warnings=("two users have nothing", "and [one] more")),
            False,
            ["  warning: two users have nothing", "  warning: and [one] more"],
        ),
        (
            create_record(failure=Failure("a\nerror: b\x1b[2J"), warnings=("c\rd",)),
            False,
            [
                r"fit ItemKNN [demo, seed 42]: failed: a\nerror: b\x1b[2J",
                r"  warning: c\rd",
            ],
        ),
    ],
)
def test_log_has_one_line_per_computed_stage(
    record: StageRecord, verbose: bool, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Plain(verbose=verbose).finished(record)
    captured = capsys.readouterr()
    assert captured.err.splitlines() == lines
    assert captured.out == ""


def test_log_numbers_the_stages_and_adds_the_time_that_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stages = [Stage("fit", "fit ItemKNN", digit, str, (), Keys(model="ItemKNN")) for digit in "01"]
    plain = Plain(verbose=False)
    plain.planned(RemainingWork(stages, clock=lambda: 0.0))
    for stage in stages:
        plain.started(stage)
        plain.finished(create_record(digest=stage.digest, seconds=95.0))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "[1/2] fit ItemKNN [demo, seed 42]: 95.00 s, 1,500 MB, 2 min left"
    assert second == "[2/2] fit ItemKNN [demo, seed 42]: 95.00 s, 1,500 MB"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("seen")
    (path / "seen.yaml").write_text(SPEC)
    return path


@pytest.fixture(scope="module")
def first_screen(folder: Path) -> Screen:
    code, screen = run_in_terminal("run", "seen.yaml", folder=folder, width=80)
    assert code == 0, screen.text()
    return screen


def test_terminal_shows_finished_stages_and_the_summary_only(first_screen: Screen) -> None:
    assert first_screen.strange == []
    assert not first_screen.hidden
    lines = first_screen.text()
    assert lines[0].startswith("load demo [demo]: ")
    assert any(line.startswith("fit [b]x[/b] [demo, seed 42]: ") for line in lines)
    start = lines.index("Results")
    assert "nDCG@5" in "".join(lines[start + 1 : start + 4])
    assert any(line.startswith("[b]x[/b] b") for line in lines[start:])
    assert any(line.startswith("run folder: results/seen/") for line in lines)
    assert not [line for line in lines if "━" in line or "⠋" in line or "\\" in line]


def test_table_fits_eighty_columns(first_screen: Screen) -> None:
    lines = first_screen.text()
    table = lines[
        lines.index("Results") : lines.index(next(line for line in lines if "Bold" in line))
    ]
    assert max(map(len, table)) <= 80
    rows = [line for line in table if line.startswith("MostPop  a")]
    assert sum(line.count("0.") + line.count("3.") for line in rows) == 5, "a value is missing"


GROUPED = [
    "- {name: nDCG, by: gender}",
    "- {name: log_popularity_difference, by: gender}",
    "- {name: HR, by: gender}",
    "- {name: Recall, by: gender}",
]


@pytest.mark.parametrize("width", [80, 120])
def test_metrics_that_do_not_fit_are_left_out_and_named(folder: Path, width: int) -> None:
    metrics = "\n  ".join(
        ["metrics:", *GROUPED, *map("- {}".format, ("nDCG", "HR", "Gini", "ARP"))]
    )
    spec = re.sub("metrics: .*", metrics, SPEC.replace("name: seen", f"name: groups-{width}"))
    (folder / "groups.yaml").write_text(spec)
    code, screen = run_in_terminal("run", "groups.yaml", folder=folder, width=width)
    assert code == 0, screen.text()
    lines = screen.text()
    first = lines.index("Results")
    table = lines[
        first : next(
            at for at, line in enumerate(lines) if at > first and line.startswith("run folder:")
        )
    ]
    assert max(map(len, table)) <= width
    assert sum(line.startswith("MostPop  a") for line in table) == 1, "the table is split"
    text = " ".join(table)
    assert (
        "Not shown: ratio and standard deviation of groups, beside their gap (metrics.csv" in text
    )
    assert "ratio of groups" not in text
    note = text.partition("Too wide to show: ")[2].partition(" (metrics.csv and ")[0]
    left_out = note.split("; ") if note else []
    assert ["HR@5", "Gini@5", "ARP@5"][3 - len(left_out) :] == left_out
    shown = next(line for line in table if line.startswith("MostPop  a")).split()
    values = [word for word in shown if re.fullmatch(r"-?\d+\.\d+", word)]
    assert len(values) + len(left_out) == 4 + 4
    assert bool(left_out) == (width == 80)


def test_error_in_a_terminal_has_two_lines(folder: Path) -> None:
    code, screen = run_in_terminal("run", "seen.yml", folder=folder, width=80)
    assert code == 2
    assert [line[:6] for line in screen.text() if line][:2] == ["error:", "help: "]
    assert not screen.hidden
