"""``recbias clean``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from recbias.cli.printing import print_line, report_errors

SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def clean(
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Only results not used for 30d, 12h, 2w.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the results to remove.")
    ] = False,
) -> None:
    """Remove cached stage results from the store. Run folders (results/NAME/...) are kept."""
    with report_errors():
        from recbias.core.input_files import to_local_path
        from recbias.runner.storage.cleaning import remove_unused

        store = to_local_path(out) / "store"
        remaining, removed = remove_unused(store, parse_age(older_than), dry_run=dry_run)
        verb = "would remove" if dry_run else "removed"
        for kind, (count, size) in sorted(removed.items()):
            print_line(f"{verb} {count:,} {kind} results, {size / 2**20:,.1f} MB")
        if not removed:
            print_line("nothing to remove")
        if remaining:
            total = sum(count for count, _ in remaining.values())
            print_line(f"kept {total:,} newer results")


def parse_age(text: str | None) -> float:
    """Return an age in seconds, 0 for None.

    >>> parse_age("30d"), parse_age(None)
    (2592000.0, 0.0)

    Raises:
        WrongType: The text is not a number with m, h, d or w.
    """
    if text is None:
        return 0.0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text.strip())
    if not match:
        from recbias.core.errors import WrongType

        message = f"{text!r} is not an age"
        raise WrongType(message, where="--older-than", remedy="write 30d, 12h, 90m or 2w")
    return float(match[1]) * SECONDS[match[2]]
