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

_BASES = {
    "units": "from the values of units",
    "values": "from the values of units, their intervals as stored",
    "samples": "as stored, their intervals from bootstrap samples",
    "means": "as means of others",
    "stored": "as stored: the run folder does not tell how they were computed",
}
_TESTS = {"tested": "made again", "corrected": "with p-values as stored, corrected again"}


def verify(
    card: Annotated[Path, typer.Argument(metavar="CARD", help="The card.json to verify.")],
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run folder, or the name of an experiment.")
    ],
    key_env: KeyEnv = None,
    leaderboard: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add the card to this CSV file, if nothing differs."),
    ] = None,
    as_json: AsJson = False,
    out: Out = Path("results"),
) -> None:
    """Compute the figures of an audit card again from its run, and print what differs."""
    with report_errors(), open_document(is_wanted=as_json) as document:
        from recbias import api
        from recbias.core.input_files import to_local_path
        from recbias.reports.audit_cards.card_files import read_key

        key = read_key(key_env)
        verification = api.verify(to_local_path(card), run, key=key, out=out)
        if as_json:
            document.update(describe_verification(verification))
        else:
            with allow_closed_output():
                show_verification(verification)
        if not verification.is_same:
            raise typer.Exit(OUT_OF_TOLERANCE)
        if leaderboard is not None:
            from recbias.reports.audit_cards.leaderboard import add_to_leaderboard

            path = add_to_leaderboard(
                to_local_path(leaderboard), verification.card, verification.signature
            )
            print_line(f"added to {path}", longest=None)


def describe_verification(verification: Verification) -> dict[str, object]:
    """Return the content of ``--json``."""
    return {
        "card": verification.card.digest,
        "same": verification.is_same,
        "signature": verification.signature,
        "counts": dict(verification.counts),
        "not_recomputed": dict(verification.not_recomputed),
        "differences": [difference._asdict() for difference in verification.differences],
    }


def cut_alike(stated: str, recomputed: str, most: int = 80) -> tuple[str, str]:
    """Return the parts of two texts, of at most ``most`` characters, that show where they differ.

    >>> cut_alike("one two three", "one two four", 6)
    ('… thre…', '… four')
    >>> cut_alike("0.25", "0.26")
    ('0.25', '0.26')
    """
    texts = (stated, recomputed)
    if max(map(len, texts)) <= most or stated == recomputed:
        return texts
    n_equal = next(n for n in count() if stated[n : n + 1] != recomputed[n : n + 1])
    start = max(n_equal - most // 4, 0)
    end = start + most - bool(start)
    first, second = (
        f"{'…' * bool(start)}{text[start:end]}{'…' * (len(text) > end)}" for text in texts
    )
    return first, second


def _name_run(verification: Verification) -> str:
    """Return whether the card is of a run of another spec, blank if it is not."""
    changed = {where for where, _, _ in verification.differences}
    name = verification.card.audited.name
    return f": the card is of another spec ({name})" if "audited: spec_digest" in changed else ""


def show_verification(verification: Verification) -> None:
    """Print what differs, then what was computed again, the signature and the result."""
    from recbias.cli.grids import print_rows
    from recbias.reports.views.rounding import format_count

    if verification.differences:
        counted = format_count(len(verification.differences), "difference")
        print_rows(
            ("where", "stated", "recomputed"),
            [
                (where, *cut_alike(stated, recomputed))
                for where, stated, recomputed in verification.differences[:MOST_DIFFERENCES]
            ],
            title=f"{counted}{_name_run(verification)}",
        )
    if (more := len(verification.differences) - MOST_DIFFERENCES) > 0:
        print_line(f"{format_count(more, 'more difference')}: --json lists all.")
    for noun, texts in (("value", _BASES), ("test", _TESTS)):
        for basis, text in texts.items():
            if n := verification.counts.get(basis, 0):
                print_line(f"{format_count(n, noun)} {text}.")
    if verification.not_recomputed:
        names = ", ".join(f"{name} ({n})" for name, n in verification.not_recomputed.items())
        print_line(f"Not recomputed: {names}.", longest=None)
    print_line(f"Signature: {_SIGNATURES[verification.signature]}.")
    print_line(
        f"{'same' if verification.is_same else 'differs'}: card {verification.card.digest[:16]}"
    )
