from __future__ import annotations

from pathlib import Path

import pytest

from recbias import api
from recbias.cli import display
from recbias.cli.display import Plain, observing
from recbias.core.records import Failure, StageRecord
from recbias.runner.execution.executor import Silent
from support.commands import SMALL, inside, small_spec
from support.screen import Screen, shown

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


def changed(**facts: object) -> StageRecord:
    return StageRecord(**{**FIT.as_json(), **facts})


@pytest.mark.parametrize(
    ("record", "verbose", "lines"),
    [
        (FIT, False, ["fit ItemKNN [demo, seed 42]: 1.23 s, 1,500 MB"]),
        (
            changed(resumed_seconds=0.5),
            False,
            ["fit ItemKNN [demo, seed 42]: 1.23 s (0.50 s of it in an earlier run), 1,500 MB"],
        ),
        (changed(fold=2), False, ["fit ItemKNN [demo, seed 42, fold 2]: 1.23 s, 1,500 MB"]),
        (changed(kind="dataset"), False, ["fit ItemKNN [demo]: 1.23 s, 1,500 MB"]),
        (changed(reused=True), False, []),
        (changed(reused=True), True, ["fit ItemKNN [demo, seed 42]: stored"]),
        (changed(kind="measure"), False, []),
        (changed(kind="measure"), True, ["fit ItemKNN [demo, seed 42]: 1.23 s, 1,500 MB"]),
        (
            changed(kind="measure", failure=Failure("no [b]memory[/b]")),
            False,
            ["fit ItemKNN [demo, seed 42]: failed: no [b]memory[/b]"],
        ),
        (
            changed(reused=True, warnings=("two users have nothing", "and [one] more")),
            False,
            ["  warning: two users have nothing", "  warning: and [one] more"],
        ),
        (
            changed(failure=Failure("a\nerror: b\x1b[2J"), warnings=("c\rd",)),
            False,
            [
                r"fit ItemKNN [demo, seed 42]: failed: a\nerror: b\x1b[2J",
                r"  warning: c\rd",
            ],
        ),
    ],
)
def test_a_log_has_one_line_a_stage_that_took_work(
    record: StageRecord, verbose: bool, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Plain(verbose=verbose).finished(record)
    said = capsys.readouterr()
    assert said.err.splitlines() == lines
    assert said.out == ""


def test_a_log_says_how_far_a_long_stage_is_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Plain(verbose=False)
    monkeypatch.setattr(display, "PLAIN_EVERY", -1.0)
    plain.progressed("epochs", 1200, 5000)
    monkeypatch.setattr(display, "PLAIN_EVERY", 3600.0)
    plain.progressed("epochs", 1201, 5000)
    monkeypatch.setattr(display, "PLAIN_EVERY", -1.0)
    plain.progressed("a\nb\x07", 1, 2)
    assert capsys.readouterr().err == "  epochs: 1,200 of 5,000\n  a\\nb\\x07: 1 of 2\n"


def test_the_observer_fits_where_stderr_goes(capsys: pytest.CaptureFixture[str]) -> None:
    with observing(quiet=True, verbose=False) as observer:
        assert isinstance(observer, Silent)
    with observing(quiet=False, verbose=True) as observer:
        assert isinstance(observer, Plain)
        assert observer.verbose


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("seen")
    (made / "seen.yaml").write_text(SPEC)
    return made


@pytest.fixture(scope="module")
def first(folder: Path) -> Screen:
    code, screen = shown("run", "seen.yaml", folder=folder, width=80)
    assert code == 0, screen.text()
    return screen


def test_a_terminal_is_left_clean_with_the_summary_on_it(first: Screen) -> None:
    assert first.strange == []
    assert not first.hidden
    lines = first.text()
    assert lines[0].startswith("load demo [demo]: ")
    assert any(line.startswith("fit [b]x[/b] [demo, seed 42]: ") for line in lines)
    at = lines.index("Results")
    assert "nDCG@5" in "".join(lines[at + 1 : at + 4])
    assert any(line.startswith("[b]x[/b] b") for line in lines[at:])
    assert any(line.startswith("run folder: results/seen/") for line in lines)
    assert not [line for line in lines if "━" in line or "⠋" in line or "\\" in line]


def test_a_table_keeps_to_eighty_columns(first: Screen) -> None:
    lines = first.text()
    table = lines[lines.index("Results") : lines.index(next(n for n in lines if "Bold" in n))]
    assert max(map(len, table)) <= 80
    rows = [line for line in table if line.startswith("MostPop  a")]
    assert sum(line.count("0.") + line.count("3.") for line in rows) == 5, "all five figures"


@pytest.mark.parametrize("width", [20, 40])
def test_a_narrow_terminal_is_no_crash(folder: Path, first: Screen, width: int) -> None:
    code, screen = shown("run", "seen.yaml", "--verbose", folder=folder, width=width)
    assert code == 0, screen.text()
    assert screen.strange == []
    assert "nDCG@5" in "".join(screen.text())


def test_a_fault_in_a_terminal_is_its_two_lines(folder: Path) -> None:
    code, screen = shown("run", "seen.yml", folder=folder, width=80)
    assert code == 2
    assert [line[:6] for line in screen.text() if line][:2] == ["error:", "help: "]
    assert not screen.hidden


def test_a_plan_says_dataset_seed_and_fold_where_there_are_several(folder: Path) -> None:
    one = inside("plan", "seen.yaml", folder=folder)
    assert one.code == 0, one.err
    title, head = one.out.splitlines()[:2]
    assert title == "seen"
    assert not {"dataset", "seed", "fold"} & set(head.split())
    several = inside(
        *("plan", "seen.yaml", "--set", "split.folds=2", "--set", "seeds=[1, 2]"),
        *("--set", "dataset=[{name: demo, label: a}, {name: demo, label: b, n_users: 30}]"),
        folder=folder,
    )
    assert several.code == 0, several.err
    head = several.out.splitlines()[1]
    assert head.split()[:4] == ["stage", "dataset", "seed", "fold"]
    fits = [line.split() for line in several.out.splitlines() if line.startswith("fit MostPop")]
    assert {tuple(each[2:5]) for each in fits} == {
        (label, seed, fold) for label in "ab" for seed in "12" for fold in "12"
    }


def test_a_plan_may_be_quiet_or_name_every_measurement(folder: Path, first: Screen) -> None:
    quiet = inside("plan", "seen.yaml", "--quiet", folder=folder).out.splitlines()
    # load, split, ask; 2 models of fit, ask and 5 metrics
    assert quiet[0] == "17 stages (10 of them measurements): 17 stored, 0 to do"
    assert len(quiet) == 3
    every = inside("plan", "seen.yaml", "--verbose", folder=folder).out
    assert every.count("measure ") == 10
    assert "measure Gini of [b]x[/b]" in every


def test_a_plan_counts_the_trials_of_a_search(tmp_path: Path) -> None:
    tune = "tune: {metric: nDCG, trials: 3, space: {neighbors: {int: [1, 9]}}}"
    text = SMALL.replace("ItemKNN", f"{{name: ItemKNN, {tune}}}")
    spec = small_spec(tmp_path, text.replace("test: 0.2", "test: 0.2, validation: 0.2"))
    before = inside("plan", spec, folder=tmp_path)
    assert before.code == 0, before.err
    (search,) = [each for each in before.out.splitlines() if each.startswith("search ItemKNN")]
    assert "to do (0 of 3 trials stored)" in search
    # load, split, ask; 3 models of fit, ask and 3 metrics; 3 trials and the search
    assert "22 stages (9 of them measurements, 3 trials): 0 stored, 22 to do" in before.out
    assert "trial 1" not in before.out
    assert "trial 3 of ItemKNN" in inside("plan", spec, "--verbose", folder=tmp_path).out


def test_a_plan_says_what_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    spec = small_spec(tmp_path)
    plan, store = api.plan(spec, out=tmp_path / "results")
    fit = next(each for each in plan.stages if each.title == "fit ItemKNN")
    partial = store.folder / "partial"
    partial.mkdir(parents=True)
    (partial / f"{fit.digest}-1").touch()
    said = inside("plan", spec, folder=tmp_path)
    lines = [line for line in said.out.splitlines() if "to do from its checkpoint" in line]
    assert [line.split("  ")[0] for line in lines] == ["fit ItemKNN"]
    fresh = inside("plan", spec, "--fresh", folder=tmp_path)
    assert "to do from its checkpoint" not in fresh.out
