"""``recbias clean``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from recbias.cli.faults import reported
from recbias.cli.printing import print_line

SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def clean(
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Only what was not used for 30d, 12h, 2w.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Show what the store holds, and remove it. Runs (results/NAME/...) are never touched."""
    with reported():
        from recbias.core.paths import local_path
        from recbias.runner.storage.cleaning import sweep_out

        kept, gone = sweep_out(local_path(out) / "store", age_seconds(older_than), dry_run=dry_run)
        verb = "would remove" if dry_run else "removed"
        for kind, (count, size) in sorted(gone.items()):
            print_line(f"{verb} {count:,} {kind} results, {size / 2**20:,.1f} MB")
        if not gone:
            print_line("nothing to remove")
        if kept:
            count = sum(each for each, _ in kept.values())
            print_line(f"kept {count:,} newer results")


def age_seconds(text: str | None) -> float:
    """Return an age in seconds, 0 where there is none.

    >>> age_seconds("30d"), age_seconds(None)
    (2592000.0, 0.0)

    Raises:
        WrongType: It is not a number with m, h, d or w.
    """
    if text is None:
        return 0.0
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([mhdw])", text.strip())
    if not match:
        from recbias.core.errors import WrongType

        found = f"{text!r} is not an age"
        raise WrongType(found, where="--older-than", remedy="write 30d, 12h, 90m or 2w")
    return float(match[1]) * SECONDS[match[2]]
