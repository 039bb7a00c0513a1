"""Writes the real output of commands into pages that show another.

    PYTHONPATH=src:tests python -m support.documentation.update_pages docs/gate.md ...

Read the change before it is committed: ``...`` of a text that is replaced is lost.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from support.documentation.blocks import read_blocks
from support.documentation.pages import PageRun, prepare_folder


def update_page(path: Path, folder: Path, data: Path | None) -> int:
    """Run the blocks of a page in a folder, replace what differs and return the number."""
    page = path.read_text(encoding="utf-8")
    blocks = read_blocks(page)
    corrections: dict[int, str] = {}
    PageRun(str(path), prepare_folder(folder), data, corrections).run(blocks)
    lines = page.splitlines()
    for block in reversed(blocks):
        if block.line in corrections:
            last = block.line - 1 + len(block.text.splitlines())
            lines[block.line - 1 : last] = corrections[block.line].rstrip().splitlines()
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return len(corrections)


if __name__ == "__main__":
    real_data = os.environ.get("RECBIAS_DATA")
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as scratch:
            count = update_page(Path(name), Path(scratch), Path(real_data) if real_data else None)
        print(f"{name}: {count} texts replaced")
