from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console

from recbias import api, progress
from recbias.core.context import Failure, StageRecord
from recbias.live import Live
from recbias.progress import Plain, open_observer
from recbias.runner.remaining import RemainingWork
from recbias.runner.stage import Keys, Stage
from support.commands import SMALL, invoke_recbias, write_small_spec
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


def test_a_warning_of_groups_is_shown_once_and_one_of_a_fit_for_each_model(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = Plain(verbose=False)
    for model in ("MostPop", "ItemKNN"):
        for seed in (1, 2):
            keys = {"model": model, "seed": seed, "reused": True}
            log.finished(create_record(**keys, kind="measure", warnings=("3 have no label",)))
            log.finished(create_record(**keys, warnings=("no convergence",)))
    lines = capsys.readouterr().err.splitlines()
    assert lines.count("  warning: 3 have no label") == 1
    assert lines.count("  warning: no convergence") == 2


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


def test_log_has_progress_lines_at_intervals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Plain(verbose=False)
    monkeypatch.setattr(progress, "PLAIN_EVERY", -1.0)
    plain.progressed("epochs", 1200, 5000)
    monkeypatch.setattr(progress, "PLAIN_EVERY", 3600.0)
    plain.progressed("epochs", 1201, 5000)
    monkeypatch.setattr(progress, "PLAIN_EVERY", -1.0)
    plain.progressed("a\nb\x07", 1, 2)
    assert capsys.readouterr().err == "  epochs: 1,200 of 5,000\n  a\\nb\\x07: 1 of 2\n"


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


def test_log_of_a_run_counts_to_the_last_stage(tmp_path: Path) -> None:
    (tmp_path / "seen.yaml").write_text(SPEC)
    result = invoke_recbias("run", "seen.yaml", "--verbose", folder=tmp_path)
    assert result.code == 0, result.err
    numbers = re.findall(r"^\[(\d+)/(\d+)\] ", result.err, re.MULTILINE)
    assert numbers == [(str(number), "17") for number in range(1, 18)]
    last = result.err.splitlines()[-1]
    assert last.startswith("[17/17] measure Entropy of ")
    assert "left" not in last


def test_live_display_has_the_stages_and_the_time_that_is_left_in_eighty_columns() -> None:
    stages = [
        Stage("fit", "fit ItemKNN", digit, str, (), Keys(model="ItemKNN")) for digit in "012"
    ]
    live = Live(verbose=False)
    live._console = live._progress.live.console = Console(
        width=80, file=io.StringIO(), force_terminal=True
    )
    live.planned(RemainingWork(stages, clock=lambda: 0.0))
    live.started(stages[0])
    live.finished(create_record(digest="0", seconds=95.0))
    live.started(stages[1])
    live.progressed("epochs", 3, 20)
    live._console.print(live._progress.get_renderable())
    text = Screen(80)
    text.feed(live._console.file.getvalue().replace("\n", "\r\n"))  # type: ignore[attr-defined]
    lines = [line[2:] for line in text.text() if line[1:2] == " "]
    assert lines[-2].startswith("1 of 3 stages, 4 min left ━")
    assert lines[-1].startswith("fit ItemKNN: epochs")
    assert " 3/20 " in lines[-1]
    assert " 1/3 " not in lines[-2], "the number of stages stands in the title"


def test_observer_depends_on_the_options_and_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_observer(quiet=True, verbose=False) as observer:
        observer.finished(create_record(warnings=("3 queries have no list",)))
        observer.finished(create_record(warnings=("3 queries have no list",)))
    title = f"{FIT.stage} [{FIT.dataset}, seed {FIT.seed}]"
    assert capsys.readouterr().err == f"warning: {title}: 3 queries have no list\n"
    with open_observer(quiet=False, verbose=True) as observer:
        assert isinstance(observer, Plain)
        assert observer.verbose
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with open_observer(quiet=False, verbose=False) as observer:
        assert isinstance(observer, Live)


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


@pytest.mark.parametrize("width", [20, 40])
def test_summary_is_printed_in_a_narrow_terminal(
    folder: Path, first_screen: Screen, width: int
) -> None:
    code, screen = run_in_terminal("run", "seen.yaml", "--verbose", folder=folder, width=width)
    assert code == 0, screen.text()
    assert screen.strange == []
    assert "nDCG@5" in "".join(screen.text())


def test_error_in_a_terminal_has_two_lines(folder: Path) -> None:
    code, screen = run_in_terminal("run", "seen.yml", folder=folder, width=80)
    assert code == 2
    assert [line[:6] for line in screen.text() if line][:2] == ["error:", "help: "]
    assert not screen.hidden


def test_plan_has_columns_for_repeated_datasets_seeds_and_folds(folder: Path) -> None:
    single = invoke_recbias("plan", "seen.yaml", folder=folder)
    assert single.code == 0, single.err
    title, head = single.out.splitlines()[:2]
    assert title == "seen"
    assert not {"dataset", "seed", "fold"} & set(head.split())
    repeated = invoke_recbias(
        *("plan", "seen.yaml", "--set", "split.folds=2", "--set", "seeds=[1, 2]"),
        *("--set", "dataset=[{name: demo, label: a}, {name: demo, label: b, n_users: 30}]"),
        folder=folder,
    )
    assert repeated.code == 0, repeated.err
    head = repeated.out.splitlines()[1]
    assert head.split()[:4] == ["stage", "dataset", "seed", "fold"]
    fits = [line.split() for line in repeated.out.splitlines() if line.startswith("fit MostPop")]
    assert {tuple(cells[2:5]) for cells in fits} == {
        (label, seed, fold) for label in "ab" for seed in "12" for fold in "12"
    }


def test_plan_may_be_quiet_or_list_every_metric(folder: Path, first_screen: Screen) -> None:
    quiet = invoke_recbias("plan", "seen.yaml", "--quiet", folder=folder).out.splitlines()
    # dataset, split, queries; 2 models with fit, answer and 5 metrics
    assert quiet[0] == "17 stages (10 metrics): 17 cached, 0 to run"
    assert len(quiet) == 3
    verbose = invoke_recbias("plan", "seen.yaml", "--verbose", folder=folder).out
    assert verbose.count("measure ") == 10
    assert "measure Gini of [b]x[/b]" in verbose


def test_plan_counts_the_trials_of_a_search(tmp_path: Path) -> None:
    tune = "tune: {metric: nDCG, trials: 3, space: {neighbors: {int: [1, 9]}}}"
    text = SMALL.replace("ItemKNN", f"{{name: ItemKNN, {tune}}}")
    spec = write_small_spec(tmp_path, text.replace("test: 0.2", "test: 0.2, validation: 0.2"))
    before = invoke_recbias("plan", spec, folder=tmp_path)
    assert before.code == 0, before.err
    (search,) = [line for line in before.out.splitlines() if line.startswith("search ItemKNN")]
    assert "to run (0 of 3 trials cached)" in search
    # dataset, split, queries; 3 models with fit, answer and 3 metrics; 3 trials and the search
    assert "22 stages (9 metrics, 3 trials): 0 cached, 22 to run" in before.out
    assert "trial 1" not in before.out
    assert "trial 3 of ItemKNN" in invoke_recbias("plan", spec, "--verbose", folder=tmp_path).out


def test_plan_marks_stages_that_resume_from_a_checkpoint(tmp_path: Path) -> None:
    spec = write_small_spec(tmp_path)
    plan, store = api.plan(spec, out=tmp_path / "results")
    fit = next(stage for stage in plan.stages if stage.title == "fit ItemKNN")
    partial = store.folder / "partial"
    partial.mkdir(parents=True)
    (partial / f"{fit.digest}-1").touch()
    result = invoke_recbias("plan", spec, folder=tmp_path)
    lines = [line for line in result.out.splitlines() if "to resume from its checkpoint" in line]
    assert [line.split("  ")[0] for line in lines] == ["fit ItemKNN"]
    fresh = invoke_recbias("plan", spec, "--fresh", folder=tmp_path)
    assert "to resume from its checkpoint" not in fresh.out
