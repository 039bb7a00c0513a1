"""Verification of an audit card: it is compared with the files of its run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from recbias.core.errors import MissingRun
from recbias.reports.card import (
    Card,
    build_card,
    compute_card_digest,
    digest_files,
    digest_inside,
    read_card,
)
from recbias.reports.run import read_manifest, read_run
from recbias.runs.tables import Run, find_run


class _Difference(NamedTuple):
    """What differs: where it is, what the card or the manifest states, and what the run has."""

    location: str
    stated: str
    found: str


@dataclass(frozen=True)
class Verification:
    """What the verification of a card found.

    Args:
        card: The card.
        differences: What differs: digests, files, figures, definitions.
    """

    card: Card
    differences: tuple[_Difference, ...]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def verify(
    card: Path | str,
    run: Run | Path | str,
    *,
    out: Path | str = "results",
) -> Verification:
    """Compare a card with a run, and return what differs.

    The files of the run are compared with the digests in the card, its tables and reports with
    those in ``manifest.json``, and the content of the card with the spec, manifest and tables of
    the run.

    Args:
        card: The path of ``card.json``.
        run: A run, its folder, or the name of an experiment, for its latest run.
        out: The folder of results in which a name is looked up.

    Raises:
        UserError: The card cannot be read or is none, or the run does not exist.

    Example:
        recbias.verify("results/audit/latest/card.json", "audit").is_same
    """
    read = read_card(Path(card))
    folder = run.folder if isinstance(run, Run) else find_run(run, out)
    digest, differences = compute_card_digest(read), []
    if digest != read.digest:
        differences.append(_Difference("digest of the card", read.digest, digest))
    try:
        differences += _compare_files(read, folder)
        skipped = {"files", "digest"}
        pair = (each.model_dump(exclude=skipped) for each in (read, build_card(read_run(folder))))
        differences += _compare("", *pair)
    except MissingRun as error:
        differences.append(_Difference("the run cannot be read", "", f"{error}; {error.remedy}"))
    return Verification(read, tuple(differences))


def _compare_files(card: Card, folder: Path) -> Iterator[_Difference]:
    """Yield the files of a run that are not those of the card, or not as they were written."""
    manifest = read_manifest(folder / "manifest.json")
    found = digest_files(folder, manifest.get("files", {}))
    for name in {**card.files, **found}:
        pair = card.files.get(name, "absent"), found.get(name, "absent")
        if pair[0] != pair[1]:
            yield _Difference(f"file {name}", *pair)
    reports = manifest.get("reports", {})
    for name, stated in {**manifest.get("digests", {}), **reports}.items():
        digest = digest_inside(folder, name)
        is_absent = name in reports and digest == "absent"
        is_named = card.files.get(name) != found.get(name)
        if digest != stated and not is_absent and not is_named:
            yield _Difference(f"file {name}: as written", stated, digest)


def _compare(location: str, card: Any, run: Any) -> Iterator[_Difference]:
    """Yield each value of a card that differs from that of the run; numbers up to rounding."""
    if isinstance(card, dict) and isinstance(run, dict):
        for name in {**card, **run}:
            inner = f"{location}: {name}" if location else name
            yield from _compare(inner, card.get(name, "absent"), run.get(name, "absent"))
    elif isinstance(card, list) and isinstance(run, list) and len(card) == len(run):
        for number, pair in enumerate(zip(card, run, strict=True), 1):
            yield from _compare(f"{location}: {_name_row(pair[1]) or number}", *pair)
    elif isinstance(card, float) and isinstance(run, float):
        if not math.isclose(card, run, rel_tol=1e-9, abs_tol=1e-15):
            yield _Difference(location, str(card), str(run))
    elif card != run:
        yield _Difference(location, *map(_format, (card, run)))


def _name_row(row: Any) -> str:
    """Return the texts of a row, which say what it is about."""
    texts = row.values() if isinstance(row, dict) else ()
    return " ".join(text for text in texts if text and isinstance(text, str))[:80]


def _format(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value):,} rows"
    return "undefined" if value is None else str(value)
