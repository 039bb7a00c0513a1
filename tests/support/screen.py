"""A command in a real pseudo-terminal, and what a person then sees on the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass, field
from pathlib import Path

_TOKENS = re.compile(r"\x1b\[(?P<numbers>[?0-9;]*)(?P<letter>[A-Za-z])|(?P<text>.)", re.DOTALL)


@dataclass
class Screen:
    """A terminal that knows what rich uses: carriage return, cursor up, erase, wrap, colours.

    Args:
        width: Columns.
        lines: What stands on it; it never scrolls.
        hidden: Whether the cursor is hidden.
        strange: Control sequences that it does not know.
    """

    width: int
    lines: list[list[str]] = field(default_factory=lambda: [[]])
    hidden: bool = False
    strange: list[str] = field(default_factory=list)
    row: int = 0
    column: int = 0

    def feed(self, text: str) -> None:
        """Take what a program wrote."""
        for token in _TOKENS.finditer(text):
            if token["letter"]:
                self._control(token["numbers"], token["letter"])
            else:
                self._character(token["text"])

    def _control(self, numbers: str, letter: str) -> None:
        if letter == "A":
            self.row = max(0, self.row - int(numbers or 1))
        elif letter == "K":
            line = self.lines[self.row]
            self.lines[self.row] = [] if numbers == "2" else line[: self.column]
        elif numbers == "?25":
            self.hidden = letter == "l"
        elif letter != "m":
            self.strange.append(numbers + letter)

    def _character(self, text: str) -> None:
        if text == "\r":
            self.column = 0
        elif text == "\n":
            self._down()
        elif not text.isprintable():
            self.strange.append(text)
        else:
            if self.column == self.width:
                self._down()
                self.column = 0
            line = self.lines[self.row]
            line.extend(" " * (self.column + 1 - len(line)))
            line[self.column] = text
            self.column += 1

    def _down(self) -> None:
        self.row += 1
        while len(self.lines) <= self.row:
            self.lines.append([])

    def text(self) -> list[str]:
        """Return the lines without the blanks at their ends."""
        return ["".join(line).rstrip() for line in self.lines]


def shown(*words: object, folder: Path, width: int) -> tuple[int, Screen]:
    """Run ``recbias`` in a terminal of that width; return its exit code and what is seen then."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    away = {"RECBIAS_DATA", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    env = {name: each for name, each in os.environ.items() if name not in away}
    process = subprocess.Popen(
        [sys.executable, "-m", "recbias", *map(str, words)],
        cwd=folder,
        env={**env, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = bytearray()
    while True:
        try:
            written += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    screen = Screen(width)
    screen.feed(written.decode())
    return process.wait(60), screen
