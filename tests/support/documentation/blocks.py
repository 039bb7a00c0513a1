"""The fenced blocks of a Markdown page."""

from __future__ import annotations

import re
from dataclasses import dataclass

NOT_RUN = {
    "a listing": "a formula, a tree of folders or a form, not the output of a command",
    "code of another tool": "a library that recbias does not need",
    "needs a language model server": "a server with an OpenAI-compatible interface, or a key",
    "needs a cluster": "SLURM, or a Ray cluster",
    "needs another system": "a device that this machine lacks",
    "needs the authors' files": "a release of the authors of a paper",
    "needs the weights of a model": "a folder of a model that is not here",
    "needs the package of a language model, and minutes": "the extra smollm2",
    "takes minutes": "too long for the tests",
}
"""The reasons for which a block may be checked without being run, and what each covers."""

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>.*)")
_TITLE = re.compile(r'title="([^"]+)"')
_COMMENT = re.compile(r"\s*<!-- (not run|exit code): (.+?) -->\s*")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        language: The first word after the fence.
        title: The file that the block is, or nothing.
        text: Its lines without their common indent.
        line: The number of its first line in the page.
        reason: Why it is not run, or nothing.
        code: The exit code of its last command.
    """

    language: str
    title: str
    text: str
    line: int
    reason: str = ""
    code: int = 0


def read_blocks(page: str) -> list[Block]:
    """Return the blocks of a page in their order."""
    blocks: list[Block] = []
    lines = page.splitlines()
    remarks: dict[str, str] = {}
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        opening = _FENCE.fullmatch(line)
        if opening is None:
            comment = _COMMENT.fullmatch(line)
            if comment:
                remarks[comment[1]] = comment[2]
            elif line.strip():
                remarks = {}
            continue
        first, closing = number, opening["indent"] + opening["fence"]
        while number < len(lines) and lines[number].rstrip() != closing:
            number += 1
        content = [line.removeprefix(opening["indent"]) for line in lines[first:number]]
        title = _TITLE.search(opening["info"])
        blocks.append(
            Block(
                language=opening["info"].split(" ")[0],
                title=title[1] if title else "",
                text="".join(f"{line}\n" for line in content),
                line=first + 1,
                reason=remarks.get("not run", ""),
                code=int(remarks.get("exit code", 0)),
            )
        )
        remarks = {}
        number += 1
    return blocks
