"""What the process of RecBole is asked to do, and how it refuses."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

REQUEST, ROWS, QUERIES = "request.json", "rows.npz", "queries.npz"
"""The files that the process reads."""

STATE, LISTS, FACTS, PROGRESS, ERROR = (
    *("state.npz", "lists.npz", "facts.json"),
    *("progress.txt", "error.json"),
)
"""The files that it writes; to rank, it reads the state."""


class Refusal(Exception):
    """A request that RecBole cannot serve.

    Args:
        message: What is wrong.
        where: The setting at fault, or blank.
        remedy: What to do, or blank.
    """

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.fields = {"message": message, "where": where, "remedy": remedy}


def write_error(kind: Any, error: BaseException, trace: Any) -> None:
    """Print an exception and write it to ``error.json``: the ``sys.excepthook`` of the process."""
    traceback.print_exception(kind, error, trace)
    if isinstance(error, Refusal):
        fields = error.fields
    else:
        text = f"{kind.__name__}: {error}" if str(error) else kind.__name__
        fields = {"message": " ".join(text.split()), "where": "", "remedy": ""}
    Path(ERROR).write_text(json.dumps(fields), encoding="utf-8")
