"""Folders that the user may not enter, also where the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import write_small_spec

CAPABILITIES = "-dac_override,-dac_read_search"
"""What lets root read every file."""


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A folder that nobody may enter."""
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "a.yaml").write_text("name: a\n")
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


def list_prefix() -> list[str]:
    """Return a command that runs another without the rights of root; empty for other users."""
    if os.geteuid():
        return []
    prefix = ["setpriv", f"--bounding-set={CAPABILITIES}", "--inh-caps=-all"]
    if shutil.which("setpriv") is None or subprocess.run([*prefix, "true"]).returncode:
        pytest.skip("root cannot give up its rights here")
    return prefix


@pytest.mark.skipif(sys.platform == "win32", reason="rights are others")
def test_each_command_names_a_folder_that_it_may_not_enter(locked: Path) -> None:
    write_small_spec(locked.parent)
    commands = [
        ["report", "locked"],
        ["runs", "--out", "locked/a"],
        ["run", "small.yaml", "--out", "locked/a"],
    ]
    calls = [
        subprocess.Popen(
            [*list_prefix(), sys.executable, "-m", "recbias", *words],
            cwd=locked.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in commands
    ]
    for words, call in zip(commands, calls, strict=True):
        _, shown = call.communicate(timeout=300)
        assert call.returncode == 2, (words, shown)
        assert "error: " in shown, words
        assert "locked" in shown, words
        assert "help: " in shown, words
        assert "Traceback" not in shown, words
