"""``recbias verify``: an audit card against the files of its run."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recbias.cli.output.document import AsJson, open_document
from recbias.cli.printing import OUT_OF_TOLERANCE, allow_closed_output, print_line, report_errors
from recbias.cli.results import KeyEnv, Out

if TYPE_CHECKING:
    from recbias.verification import Verification

MOST_DIFFERENCES = 30
"""The number of differences that are printed; ``--json`` has all."""

_SIGNATURES = {
    "valid": "the signature is that of the key",
    "wrong": "the signature is not that of the key",
    "absent": "the card is not signed, but a key was given",
    "not checked": "the card is signed; --key-env NAME checks it",
    "none": "the card is not signed: its digest shows changes, but not who wrote it",
}


def verify(
    card: Annotated[Path, typer.Argument(metavar="CARD", help="The card.json to verify.")],
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run folder, or the name of an experiment.")
    ],
    key_env: KeyEnv = None,
    as_json: AsJson = False,
    out: Out = Path("results"),
) -> None:
    """Compare an audit card with a run by the digests of its files and spec."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        from recbias import api
        from recbias.core.input_files import to_local_path
        from recbias.reports.writers.audit_card import read_key

        key = read_key(key_env)
        verification = api.verify(to_local_path(card), run, key=key, out=out)
        if as_json:
            document.update(describe_verification(verification))
        else:
            with allow_closed_output():
                show_verification(verification)
        if not verification.is_same:
            raise typer.Exit(OUT_OF_TOLERANCE)


def describe_verification(verification: Verification) -> dict[str, object]:
    """Return the content of ``--json``."""
    return {
        "card": verification.card.digest,
        "same": verification.is_same,
        "signature": verification.signature,
        "differences": [difference._asdict() for difference in verification.differences],
    }


def cut_alike(stated: str, found: str, most: int = 80) -> tuple[str, str]:
    """Return the parts of two texts, of at most ``most`` characters, that show where they differ.

    >>> cut_alike("one two three", "one two four", 6)
    ('… thre…', '… four')
    >>> cut_alike("0.25", "0.26")
    ('0.25', '0.26')
    """
    texts = (stated, found)
    if max(map(len, texts)) <= most or stated == found:
        return texts
    n_equal = next(n for n in count() if stated[n : n + 1] != found[n : n + 1])
    start = max(n_equal - most // 4, 0)
    end = start + most - bool(start)
    first, second = (
        f"{'…' * bool(start)}{text[start:end]}{'…' * (len(text) > end)}" for text in texts
    )
    return first, second


def _name_run(verification: Verification) -> str:
    """Return whether the card is of a run of another spec, blank if it is not."""
    changed = {where for where, _, _ in verification.differences}
    name = verification.card.audited.get("name")
    return f": the card is of another spec ({name})" if "audited: spec_digest" in changed else ""


def show_verification(verification: Verification) -> None:
    """Print what differs, then the signature and the result."""
    from recbias.cli.grids import print_rows
    from recbias.reports.views.rounding import format_count

    if verification.differences:
        counted = format_count(len(verification.differences), "difference")
        print_rows(
            ("where", "stated", "found"),
            [
                (where, *cut_alike(stated, found))
                for where, stated, found in verification.differences[:MOST_DIFFERENCES]
            ],
            title=f"{counted}{_name_run(verification)}",
        )
    if (more := len(verification.differences) - MOST_DIFFERENCES) > 0:
        print_line(f"{format_count(more, 'more difference')}: --json lists all.")
    print_line(f"Signature: {_SIGNATURES[verification.signature]}.")
    print_line(
        f"{'same' if verification.is_same else 'differs'}: card {verification.card.digest[:16]}"
    )
