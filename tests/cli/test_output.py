from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console

from recbias.cli.output import Answer, command, print_parts
from recbias.core.context import StageRecord
from recbias.live import Live
from recbias.progress import Plain, open_observer
from recbias.reports.wording import Cell, Column, Table
from recbias.runner.plan import Keys, RemainingWork, Stage
from support.commands import invoke_recbias, write_small_spec

SPECS = [
    ('"a\\nerror: fake:1:1: x": 1\n', r"a\nerror: fake"),
    ('"\\e]0;x\\a": 1\n', r"\x1b]0;x\x07"),
    ('dataset: "\\e]0;x\\a\\nerror: fake:1:1: x"\n', r"\x1b]0;x\x07"),
    (f'dataset: "{"k" * 100_000}"\n', "left out"),
]


@pytest.mark.parametrize(("text", "message"), SPECS, ids=["key", "terminal", "value", "long"])
def test_spec_cannot_imitate_an_error_line(tmp_path: Path, text: str, message: str) -> None:
    result = invoke_recbias(
        "plan", write_small_spec(tmp_path, f"name: a\n{text}"), folder=tmp_path
    )
    assert result.code == 2
    lines = result.err.splitlines()
    assert not [line for line in lines if line.startswith("error: fake")]
    assert all(line.startswith(("error: ", "help: ")) for line in lines)
    assert all(line.isprintable() and len(line) <= 1000 for line in lines)
    assert message in result.err


@pytest.mark.parametrize(
    "arguments",
    [("list", "models"), ("run", "small.yaml", "--quiet", "--set", "metrics=[nDCG]")],
    ids=" ".join,
)
def test_closed_pipe_is_no_error(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write_small_spec(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "recbias", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    process.stdout.close()  # before the first output
    with process.stderr:
        errors = process.stderr.read()
    assert (process.wait(60), errors) == (0, "")


def render(grid: Table, width: int, *, terminal: bool = True) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=terminal, color_system=None)
    print_parts([grid], console)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    "text", ["[red]x[/red]", "[/]", "[link=https://x]y", "\\[b]", ":smile:", "{0} %s $HOME"]
)
def test_markup_in_a_cell_is_not_interpreted(text: str, terminal: bool) -> None:
    grid = Table(text, (Column(text),), ((Cell(text, mark="a"),),), (text,))
    lines = render(grid, 80, terminal=terminal)
    assert [line for line in lines if "─" not in line] == [text, text, f"{text} a", text]


@pytest.mark.parametrize(
    ("width", "head", "names"),
    [(27, "model a n b", ""), (26, "model a b", "n"), (15, "model a", "n; b")],
)
def test_columns_of_numbers_are_left_out_of_a_narrow_terminal(
    width: int, head: str, names: str
) -> None:
    # 6 + 2 + 5 + 2 + 5 + 2 + 5 characters are 27; without n and b they are 13
    columns = (Column("model"), *(Column(name, numeric=True) for name in ("a", "n", "b")))
    grid = Table("t", columns, ((Cell("Random"), Cell("1.000"), Cell("2.000"), Cell("3.000")),))
    text = " ".join(" ".join(render(grid, width)).split())
    assert text.startswith(f"t {head} ─")
    note = f"Too wide to show: {names} (a wider terminal and --json have them)."
    assert text.endswith(note if names else "3.000")


@pytest.mark.parametrize("width", range(60, 120, 3))
def test_numbers_are_whole_at_every_width(width: int) -> None:
    gaps = ("nDCG, gap by gender", "nDCG, gap by history_length in 4 quantiles")
    titles = ("nDCG", *gaps, *(gap.replace("gap", "ratio of groups") for gap in gaps))
    numbers = ("0.3194 abcef", "0.1111", "0.2184 bcdef", "0.2222", "0.3333")
    columns = (Column("model"), *(Column(title, numeric=True) for title in titles))
    lines = render(Table("", columns, ((Cell("EASE"), *map(Cell, numbers)),)), width)
    at = next(at for at, line in enumerate(lines) if "─" in line)
    assert {*lines[at + 1].split()} <= {"EASE", *" ".join(numbers).split()}


FIT = StageRecord(
    *("fit ItemKNN", "fit", "0" * 64),
    dataset="demo",
    seed=42,
    fold=1,
    model="ItemKNN",
    seconds=1.234,
    peak_memory_mb=1500.4,
)


def create_record(**changes: object) -> StageRecord:
    return StageRecord(**{**vars(FIT), **changes})


def test_log_numbers_the_stages_and_adds_the_time_that_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stages = [
        Stage("fit", "fit ItemKNN", str, (), Keys(), digit, subject="ItemKNN") for digit in "01"
    ]
    plain = Plain(verbose=False)
    plain.planned(RemainingWork(stages, clock=lambda: 0.0))
    for stage in stages:
        plain.started(stage)
        plain.finished(create_record(digest=stage.digest, seconds=95.0))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "[1/2] fit ItemKNN [demo, seed 42]: 95.00 s, 1,500 MB, about 2 min left"
    assert second == "[2/2] fit ItemKNN [demo, seed 42]: 95.00 s, 1,500 MB"


def test_the_numbers_of_a_log_count_the_stages_that_have_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kinds = ("dataset", "measure", "queries", "fit")
    stages = [Stage(kind, kind, str, (), Keys(), kind) for kind in kinds]
    plain = Plain(verbose=False)
    plain.planned(RemainingWork(stages, stored={"dataset"}))
    for kind in kinds:
        plain.finished(create_record(kind=kind, digest=kind, reused=kind == "dataset"))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("[1/1] fit")


def test_live_display_has_the_stages_and_the_time_that_is_left_in_eighty_columns() -> None:
    stages = [
        Stage("fit", "fit ItemKNN", str, (), Keys(), digit, subject="ItemKNN") for digit in "012"
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
    page = Console(width=80, file=io.StringIO())
    page.print(live._progress.get_renderable())
    lines = [line[2:] for line in page.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines[-2].startswith("1 of 3 stages, about 4 min left ━")
    assert lines[-1].startswith("fit ItemKNN: epochs")
    assert " 3/20 " in lines[-1]
    assert " 1/3 " not in lines[-2], "the number of stages stands in the title"


def fail(error: BaseException) -> None:
    """Raise an error in a command."""

    def act() -> Answer:
        raise error

    command(act)()


def test_exhausted_memory_is_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught:
        fail(MemoryError())
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err.startswith("error: out of memory\nhelp: ")


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


def test_interrupt_explains_how_to_resume(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught:
        fail(KeyboardInterrupt())
    assert caught.value.exit_code == 130
    assert "to resume" in capsys.readouterr().err
