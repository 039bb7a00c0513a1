"""Every fenced block of README.md and docs/ is run, or checked as far as it can be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.documentation.blocks import NOT_RUN, Block, read_blocks
from support.documentation.pages import PageRun, prepare_folder
from support.documentation.shell import SHELLS

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): read_blocks(path.read_text("utf-8"))
    for path in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    if "plugins" not in path.parts  # generated; see test_plugin_pages.py
}
WITH_BLOCKS = [name for name, blocks in PAGES.items() if blocks]
REAL_DATA = re.compile(r"\b(?:ml-1m|ml-100k|ml-latest-small|goodbooks|yelp|children/a3)\b")


def needs_data(blocks: list[Block]) -> bool:
    """Say whether blocks that are run name a real dataset."""
    return any(
        REAL_DATA.search(block.text)
        for block in blocks
        if (block.title or block.language in {*SHELLS, "python"}) and not block.reason
    )


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of stages that all pages share."""
    return tmp_path_factory.mktemp("store")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.real_data] if needs_data(PAGES[name]) else [])
        for name in WITH_BLOCKS
    ],
)
def test_blocks_do_what_the_page_says(
    name: str, tmp_path: Path, store: Path, request: pytest.FixtureRequest
) -> None:
    blocks = PAGES[name]
    data = request.getfixturevalue("real_data") if needs_data(blocks) else None
    PageRun(name, prepare_folder(tmp_path, store), data).run(blocks)


def test_every_reason_is_known() -> None:
    reasons = {
        f"{name}:{block.line}": block.reason
        for name, blocks in PAGES.items()
        for block in blocks
        if block.reason
    }
    unknown = {place: reason for place, reason in reasons.items() if reason not in NOT_RUN}
    assert unknown == {}, f"the reasons are {sorted(NOT_RUN)}"
