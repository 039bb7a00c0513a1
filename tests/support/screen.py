"""Running a command in a pseudo-terminal and reading its screen."""

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
    """A terminal with the control sequences of rich: carriage return, cursor up, erase, colours.

    Args:
        width: Columns.
        lines: The lines of the screen; it never scrolls.
        hidden: Whether the cursor is hidden.
        strange: Unknown control sequences.
    """

    width: int
    lines: list[list[str]] = field(default_factory=lambda: [[]])
    hidden: bool = False
    strange: list[str] = field(default_factory=list)
    row: int = 0
    column: int = 0

    def feed(self, text: str) -> None:
        """Process the output of a program."""
        for token in _TOKENS.finditer(text):
            if token["letter"]:
                self._apply_control(token["numbers"], token["letter"])
            else:
                self._write_character(token["text"])

    def _apply_control(self, numbers: str, letter: str) -> None:
        if letter == "A":
            self.row = max(0, self.row - int(numbers or 1))
        elif letter == "K":
            line = self.lines[self.row]
            self.lines[self.row] = [] if numbers == "2" else line[: self.column]
        elif numbers == "?25":
            self.hidden = letter == "l"
        elif letter != "m":
            self.strange.append(numbers + letter)

    def _write_character(self, text: str) -> None:
        if text == "\r":
            self.column = 0
        elif text == "\n":
            self._move_down()
        elif not text.isprintable():
            self.strange.append(text)
        else:
            if self.column == self.width:
                self._move_down()
                self.column = 0
            line = self.lines[self.row]
            line.extend(" " * (self.column + 1 - len(line)))
            line[self.column] = text
            self.column += 1

    def _move_down(self) -> None:
        self.row += 1
        while len(self.lines) <= self.row:
            self.lines.append([])

    def text(self) -> list[str]:
        """Return the lines without trailing blanks."""
        return ["".join(line).rstrip() for line in self.lines]


def run_in_terminal(*words: object, folder: Path, width: int) -> tuple[int, Screen]:
    """Run ``recbias`` in a terminal of a width; return its exit code and its screen."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    unset = {"RECBIAS_DATA", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    env = {name: value for name, value in os.environ.items() if name not in unset}
    process = subprocess.Popen(
        [sys.executable, "-m", "recbias", *map(str, words)],
        cwd=folder,
        env={**env, "TERM": "xterm-256color"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    output = bytearray()
    while True:
        try:
            output += os.read(master, 65536)
        except OSError:  # the other end is closed
            break
    os.close(master)
    screen = Screen(width)
    screen.feed(output.decode())
    return process.wait(60), screen
