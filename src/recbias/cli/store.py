"""``recbias verify`` and ``clean``."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recbias.cli.output import (
    OUT_OF_TOLERANCE,
    AsJson,
    Out,
    RunName,
    allow_closed_output,
    open_document,
    print_line,
    print_rows,
    report_errors,
)
from recbias.core.errors import Contradiction, WrongType
from recbias.core.files import to_local_path
from recbias.core.text import shorten
from recbias.reports.wording import format_count
from recbias.runner.store import Store, measure_replies, remove_replies, remove_unused
from recbias.runs.verify import verify as verify_card

if TYPE_CHECKING:
    from recbias.runs.verify import Verification


MOST_DIFFERENCES, _LONGEST = 30, 100
"""The number of differences that are printed, and of their characters; ``--json`` has all."""


def verify(
    card: Annotated[Path, typer.Argument(metavar="CARD", help="The card.json to verify.")],
    run: RunName,
    as_json: AsJson = False,
    out: Out = Path("results"),
) -> None:
    """Compare an audit card with a run, by digests."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        verification = verify_card(to_local_path(card), run, out=out)
        if as_json:
            document["card"], document["same"] = verification.card.digest, verification.is_same
            document["differences"] = [each._asdict() for each in verification.differences]
        else:
            with allow_closed_output():
                _show_verification(verification)
        if not verification.is_same:
            raise typer.Exit(OUT_OF_TOLERANCE)


def _show_verification(verification: Verification) -> None:
    """Print what differs, then the result."""
    if differences := verification.differences:
        rows = [
            tuple(shorten(text, _LONGEST) for text in difference)
            for difference in differences[:MOST_DIFFERENCES]
        ]
        title = format_count(len(differences), "difference")
        print_rows(("where", "stated", "found"), rows, title=title)
        if (more := len(differences) - MOST_DIFFERENCES) > 0:
            print_line(f"{format_count(more, 'more difference')}: --json lists all.")
    result = "same" if verification.is_same else "differs"
    print_line(f"{result}: card {verification.card.digest[:16]}")


SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def clean(
    out: Out = Path("results"),
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Only results not used for 30d, 12h, 2w.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the results to remove.")
    ] = False,
    replies: Annotated[
        bool, typer.Option("--replies", help="Remove the replies of language models instead.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Remove them without a question.")
    ] = False,
) -> None:
    """Remove cached stage results from the store.

    Run folders (results/NAME/...) are kept, and so are the replies of language models, unless
    they are named by --replies.
    """
    with report_errors():
        store = Store(to_local_path(out) / "store")
        if replies:
            _clean_replies(store, older_than, dry_run=dry_run, yes=yes)
        else:
            _clean_results(store, older_than, dry_run=dry_run, yes=yes)


def _clean_results(store: Store, older_than: str | None, *, dry_run: bool, yes: bool) -> None:
    """Remove results that were not used for an age, if the user says so."""
    age = parse_age(older_than)
    remaining, removed = remove_unused(store.folder, age, dry_run=True)
    counts, sizes = (sum(part) for part in zip((0, 0), *removed.values(), strict=True))
    amount = f"{format_count(counts, 'result')}, {_format_size(sizes)}"
    if removed and not dry_run:
        if not _is_confirmed(amount, "They can be computed again.", yes=yes):
            print_line(f"kept {amount}")
            return
        remaining, removed = remove_unused(store.folder, age, dry_run=False)
    verb = "would remove" if dry_run else "removed"
    for kind, (number, size) in sorted(removed.items()):
        print_line(f"{verb} {format_count(number, f'{kind} result')}, {_format_size(size)}")
    if not removed:
        print_line("nothing to remove")
    if remaining:
        total = sum(count for count, _ in remaining.values())
        print_line(f"kept {total:,} newer results")
    n_replies, size = measure_replies(store)
    if n_replies:
        print_line(f"kept {_count_replies(n_replies, size)}")


def _count_replies(n: int, size: int) -> str:
    return f"{n:,} replies of language models, {_format_size(size)}"


def _clean_replies(store: Store, older_than: str | None, *, dry_run: bool, yes: bool) -> None:
    """Remove all replies if the user says so."""
    if older_than is not None:
        message = "the replies of language models do not expire"
        raise Contradiction(message, where="--older-than", remedy="leave --older-than out")
    n_replies, size = measure_replies(store)
    amount, verb = _count_replies(n_replies, size), "would remove"
    if not n_replies:
        print_line("nothing to remove")
        return
    if not dry_run:
        is_removed = _is_confirmed(amount, "They can only be had by asking again.", yes=yes)
        verb = "removed" if is_removed else "kept"
        if is_removed:
            remove_replies(store)
    print_line(f"{verb} {amount}")


def _is_confirmed(amount: str, consequence: str, *, yes: bool) -> bool:
    """Return whether an amount may be removed: the user is asked unless it is said."""
    try:
        return yes or typer.confirm(f"Remove {amount}? {consequence}")
    except (typer.Abort, RuntimeError):  # RuntimeError: standard input is closed
        message = f"{amount}, are removed only if you say so"
        raise Contradiction(message, where="clean", remedy="add --yes") from None


def _format_size(n_bytes: int) -> str:
    megabytes = n_bytes / 2**20
    return f"{megabytes:,.1f} MB" if megabytes >= 0.1 else f"{math.ceil(n_bytes / 1024)} kB"


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
        message = f"{text!r} is not an age"
        raise WrongType(message, where="--older-than", remedy="write 30d, 12h, 90m or 2w")
    return float(match[1]) * SECONDS[match[2]]
