"""The runner of the blocks of a page finds what is wrong with a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.documentation.blocks import Block, read_blocks
from support.documentation.output import compare_output
from support.documentation.pages import BrokenPage, PageRun
from support.documentation.shell import find_recbias, split_commands
from support.documentation.update_pages import update_page


def run_page(folder: Path, page: str) -> PageRun:
    page_run = PageRun("page.md", folder)
    page_run.run(read_blocks(page))
    return page_run


def fence(info: str, text: str, before: str = "") -> str:
    return f"{before}\n\n```{info}\n{text}\n```\n"


def test_blocks_have_language_title_line_reason_and_code() -> None:
    page = (
        'Text\n\n```yaml title="a.yaml"\nname: a\n```\n\n<!-- not run: a listing -->\n\n'
        "  ```text\n  x\n    y\n  ```\n<!-- exit code: 3 -->\n```sh\nls\n```\n"
    )
    assert read_blocks(page) == [
        Block("yaml", "a.yaml", "name: a\n", 4),
        Block("text", "", "x\n  y\n", 10, reason="a listing"),
        Block("sh", "", "ls\n", 15, code=3),
    ]


def test_a_remark_belongs_to_the_next_block_only() -> None:
    page = "<!-- not run: a listing -->\nText\n```sh\nls\n```\n"
    assert [block.reason for block in read_blocks(page)] == [""]


def test_commands_are_split_at_operators_and_continued_lines() -> None:
    text = "A=1 recbias plan x.yaml \\\n  --quiet > out.txt 2> e.txt # exits with 2\ncd a && ls\n"
    first, second, third = split_commands(text)
    assert first.words == ("recbias", "plan", "x.yaml", "--quiet")
    assert (first.target, first.variables, first.code, first.line) == ("out.txt", {"A": "1"}, 2, 2)
    assert (second.text, third.text) == ("cd a", "ls")


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("srun --gpus 1 recbias run x.yaml", ["run", "x.yaml"]),
        ("python -m recbias plan x.yaml", ["plan", "x.yaml"]),
        ("pip install recbias", None),
    ],
)
def test_recbias_is_found_behind_other_programs(line: str, arguments: list[str] | None) -> None:
    (command,) = split_commands(line)
    assert find_recbias(command) == arguments


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("nDCG  0.3070", "nDCG 0.3071"),
        ("p 0.000120", "p 0.000121"),
        ("a\n...\nb 5,949", "a\nx\ny\nb 5,949"),
        ("first ─────\n\nsecond", "first ─────\nsecond"),
        ("run folder: results/...", "run folder: results/x/20261123T083938Z-79614df9"),
    ],
)
def test_equal_output_has_no_difference(shown: str, printed: str) -> None:
    assert compare_output(shown, printed) == ""


@pytest.mark.parametrize(
    ("shown", "printed", "difference"),
    [
        ("nDCG 0.3070", "nDCG 0.3170", "the page has 0.3070, the output 0.3170"),
        ("n 5,949", "n 5,948", "the page has 5,949, the output 5,948"),
        ("difference -0.12", "difference 0.12", "the page has -0.12, the output 0.12"),
        ("best: EASE", "best: SLIM", "+best: SLIM"),
        ("a\nb", "a", "-b"),
    ],
)
def test_other_output_is_a_difference(shown: str, printed: str, difference: str) -> None:
    assert difference in compare_output(shown, printed)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (fence("sh", "recbias plan x.yaml --sed 3"), "No such option"),
        (fence("sh", "recbias plann x.yaml"), "no command plann"),
        (fence("sh", "recbias list nothing"), "exits with 2 instead of 0"),
        (fence("sh", "recbias list metrics", "<!-- exit code: 3 -->"), "exits with 0 instead"),
        (fence("sh", "frobnicate"), "no rule for frobnicate"),
        (fence("text", "x"), "no block that prints something"),
        (fence("rust", "fn main() {}"), "no rule for a block of language 'rust'"),
        (fence("python", "1 / 0"), "ZeroDivisionError"),
        (fence("python", ">>> 1 + 1\n3"), "Expected:"),
        (fence("python", "print(1)") + fence("text", "2"), "the page has 2, the output 1"),
        (fence("yaml", "metrics: [nDGC]"), "nDGC"),
        (fence("yaml", "- nDCG"), "not a mapping"),
        (fence('csv title="a.csv"', "a,b\n1"), "rows of [1, 2] cells"),
        (fence("json", "{"), "JSONDecodeError"),
        (fence('sh title="job.sh"', "if true; then"), "CalledProcessError"),
        (fence('sh title="job.sh"', "srun recbias run x.yaml --worker 3"), "No such option"),
        (
            fence("sh", "recbias run configs/quickstart.yaml --workerz 3", "<!-- not run: x -->"),
            "No such option",
        ),
        (
            fence("sh", "recbias run papers/children/a9", "<!-- not run: takes minutes -->"),
            "no packaged spec",
        ),
    ],
)
def test_a_page_with_a_fault_is_refused_with_its_line(
    tmp_path: Path, page: str, message: str
) -> None:
    with pytest.raises(BrokenPage, match=r"page\.md:\d+: ") as caught:
        run_page(tmp_path, page)
    assert message in str(caught.value)


def test_files_commands_and_python_share_a_folder(tmp_path: Path) -> None:
    page = (
        fence('python title="words.py"', "A = 1")
        + fence('python title="words.py, continued"', "B = 2")
        + fence("python", "import words\nwords.A + words.B")
        + fence("text", "3")
        + fence("sh", "mkdir -p sub\ncd sub\nrecbias show nDCG > page.txt\ncat page.txt")
        + fence("text", "nDCG (metric)\n...")
        + fence("yaml", "metrics: [nDCG]\nsplit: {name: given, train: a.csv, test: b.csv}")
    )
    page_run = run_page(tmp_path, page)
    assert page_run.folder == tmp_path / "sub"
    assert (page_run.folder / "page.txt").is_file()
    assert not (page_run.folder / "a.csv").exists()


def test_an_error_that_is_shown_is_expected(tmp_path: Path) -> None:
    run_page(tmp_path, fence("sh", "recbias show nDGC") + fence("text", "error: ...\nhelp: ..."))


def test_real_output_replaces_what_differs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    shown = fence("python", "print('a')") + fence("text", "a") + fence("python", "print('b')")
    page.write_text(shown + fence("text", "c\nd") + "end\n")
    (tmp_path / "work").mkdir()
    assert update_page(page, tmp_path / "work", None) == 1
    assert page.read_text() == shown + fence("text", "b") + "end\n"
