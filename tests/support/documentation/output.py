"""Compares the output of a command with what a page shows."""

from __future__ import annotations

import difflib
import math
import re

NUMBER = r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
TOLERANCE = 0.01
"""The relative difference of numbers with decimal places that are taken as the same."""

_PIECES = re.compile(rf"(\.\.\.|{NUMBER})")


def compare_output(shown: str, printed: str) -> str:
    """Return what differs between the output in a page and the real one, or nothing.

    ``...`` stands for any text. Spaces, blank lines and rules do not count. Whole numbers are
    the same; numbers with decimal places may differ by one unit in the last place, or by
    ``TOLERANCE``.
    """
    wanted, actual = _normalize(shown), _normalize(printed)
    numbers, pattern = [], ""
    for piece in _PIECES.split(wanted):
        if piece == "...":
            pattern += r".*?"
        elif _PIECES.fullmatch(piece):
            numbers.append(piece)
            pattern += rf"((?>{NUMBER}))"
        else:
            pattern += re.escape(piece)
    match = re.fullmatch(pattern, actual, re.DOTALL)
    if match is None:
        lines = difflib.unified_diff(
            wanted.splitlines(), actual.splitlines(), "the page", "the output", lineterm=""
        )
        return "\n".join(lines)
    pairs = zip(numbers, match.groups(), strict=True)
    return "\n".join(
        f"the page has {number}, the output {value}"
        for number, value in pairs
        if not _is_close(number, value)
    )


def _is_close(number: str, value: str) -> bool:
    if "." not in number and "e" not in number.lower():
        return number.lstrip("+") == value.lstrip("+")
    decimals = len(number.partition(".")[2].lower().partition("e")[0])
    return math.isclose(
        float(number.replace(",", "")),
        float(value.replace(",", "")),
        rel_tol=TOLERANCE,
        abs_tol=1.01 * 10**-decimals if "e" not in number.lower() else 0,
    )


def _normalize(text: str) -> str:
    lines = (re.sub(r"[ \t]+", " ", line).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line.strip("─"))
