"""A leaderboard: the estimates of many verified cards in one CSV file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd

from recbias.core.errors import DataError
from recbias.core.input_files import has_file, open_input
from recbias.formats.written_files import guard_formula, replace_file
from recbias.reports.audit_cards.card import Card

COLUMNS = (
    *("card", "name", "dataset", "model", "seed", "fold", "metric", "direction", "value"),
    *("ci_low", "ci_high", "n", "undefined", "failed_checks", "recbias", "signature"),
)
"""The columns of a leaderboard; ``card`` is the digest of the card."""

MOST_BYTES = 256 * 2**20
"""The size above which a leaderboard is refused."""

_ORDER = ["metric", "dataset", "model", "name", "card", "seed", "fold"]


def add_to_leaderboard(path: Path, card: Card, signature: str) -> Path:
    """Add the estimates of a card over all queries and items to a leaderboard, and sort it.

    A card that is in the file already is replaced, so that the order of additions does not matter.

    Args:
        path: The CSV file, which may not exist yet.
        card: The card, which its run confirms.
        signature: What the verification says of the card's signature.

    Raises:
        DataError: The file is none that this function wrote.
        Unwritable: It cannot be written.
    """
    rows = pd.DataFrame(_list_rows(card, signature), columns=list(COLUMNS), dtype="str")
    if has_file(path):
        stored = _read(path)
        rows = pd.concat([stored[stored["card"] != card.digest], rows])
    rows = rows.sort_values(_ORDER, kind="stable")
    return replace_file(path, rows.to_csv(index=False, lineterminator="\n").encode())


def _list_rows(card: Card, signature: str) -> list[dict[str, str]]:
    directions = {metric.metric: metric.direction for metric in card.definitions}
    shared: dict[str, Any] = {
        "card": card.digest,
        "name": card.audited.name,
        "failed_checks": sum(check.failed for check in card.checks),
        "recbias": card.audited.recbias,
        "signature": signature,
    }
    rows = []
    for estimate in card.estimates:
        if not estimate.group and not estimate.target:
            row = shared | estimate.model_dump() | {"direction": directions[estimate.metric]}
            rows.append({name: _format_cell(row[name]) for name in COLUMNS})
    return rows


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else guard_formula(str(value))


def _read(path: Path) -> pd.DataFrame:
    with open_input(path) as stream:
        data = stream.read(MOST_BYTES + 1)
    remedy = "give a file that --leaderboard wrote, or a new name"
    if len(data) > MOST_BYTES:
        raise DataError(f"has more than {MOST_BYTES:,} bytes", where=str(path), remedy=remedy)
    try:
        table = pd.read_csv(io.BytesIO(data), dtype="str", keep_default_na=False)
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(f"cannot be read: {error}", where=str(path), remedy=remedy) from error
    if tuple(table.columns) != COLUMNS:
        message = f"is no leaderboard: its columns are not {', '.join(COLUMNS)}"
        raise DataError(message, where=str(path), remedy=remedy)
    return table
