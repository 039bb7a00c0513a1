"""Verification of an audit card: the figures of its run are computed again and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from recbias.config.plugin_spec import PluginSpec
from recbias.core.digests import digest_file
from recbias.core.errors import MissingRun, UserError
from recbias.core.input_files import has_file
from recbias.core.measurements.columns import PAIR_COLUMNS, VALUE_COLUMNS
from recbias.core.stage_context import collect_warnings
from recbias.registry import REGISTRIES, TESTS
from recbias.reports.audit_cards.build_card import build_card, digest_files
from recbias.reports.audit_cards.card import Card
from recbias.reports.audit_cards.card_files import (
    SignatureState,
    check_signature,
    compute_card_digest,
    read_card,
)
from recbias.reports.audit_cards.differences import Difference, compare_cards, compare_frames
from recbias.reports.report_schema import parse_report
from recbias.reports.run_files import REPAIR
from recbias.reports.views.definitions import format_title
from recbias.reports.views.run_tables import RunTables, read_manifest, read_run, read_text
from recbias.reports.writers.audit_card import render_card_page
from recbias.reports.writers.json_report import find_changed_rows
from recbias.runner.recomputation.recompute import Recomputation, recompute_tables
from recbias.runner.recomputation.stored_tables import KEYS, StoredTables
from recbias.runs import Run, find_run

REPORTS = ("report.md", "report.html", "figures/*.svg", "tables/*.tex")
"""The reports whose digests are in ``manifest.json``."""


@dataclass(frozen=True)
class Verification:
    """What the verification of a card found.

    Args:
        card: The card.
        signature: ``valid``, ``wrong``, ``absent``, ``not checked`` or ``none``.
        differences: What differs: digests, files, figures, definitions.
        counts: The number of values by what they were computed from again: ``units``, ``samples``,
            ``means``, ``stored``; and of tests: ``tested``, ``corrected``.
        not_recomputed: What the run folder does not determine, such as ``Gini@10: value``, with
            the number of values. It is not shown to be right.
    """

    card: Card
    signature: SignatureState
    differences: tuple[Difference, ...]
    counts: Mapping[str, int]
    not_recomputed: Mapping[str, int]

    @property
    def is_same(self) -> bool:
        """Whether nothing differs, and the signature is not wrong."""
        return not self.differences and self.signature not in {"wrong", "absent"}


def verify(
    card: Path | str,
    run: Run | Path | str,
    *,
    key: bytes | None = None,
    out: Path | str = "results",
) -> Verification:
    """Compute the figures of a card again from its run, and return what differs.

    The means, intervals, tests and corrections are computed from ``per_unit.parquet`` and
    ``replicates.parquet``, not copied from ``metrics.csv``; what these files do not determine is
    counted. The files of the run are compared with the digests in the card, and the pages beside
    the card with those that this version of recbias writes of it.

    Args:
        card: The path of ``card.json``.
        run: A run, its folder, or the name of an experiment, for its latest run.
        key: The key of the signature; without one it is not checked.
        out: The folder of results in which a name is looked up.

    Raises:
        UserError: The card cannot be read or is none, or the run does not exist.

    Example:
        recbias.verify("results/audit/latest/card.json", "audit").is_same
    """
    read = read_card(Path(card))
    folder = run.folder if isinstance(run, Run) else find_run(run, out)
    differences = [*_compare_digest(read), *_compare_pages(read, Path(card))]
    counts: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    try:
        differences += _compare_files(read, folder)
        tables = read_run(folder)
        recomputed = recompute_run(tables)
        rebuilt = replace(
            tables,
            metrics=recomputed.metrics,
            significance=recomputed.significance,
            manifest={**tables.manifest, "checks": recomputed.checks},
        )
        vars(rebuilt)["groups"] = recomputed.groups
        differences += compare_cards(read, build_card(rebuilt))
    except MissingRun as error:
        differences.append(Difference("the run cannot be read", "", f"{error}; {error.remedy}"))
    else:
        differences += [Difference("tests", "", fault) for fault in recomputed.faults]
        differences += compare_tables(tables, recomputed)
        differences += _compare_written(tables)
        differences += _compare_report(rebuilt)
        counts.update(recomputed.basis)
        counts.update("tested" if done else "corrected" for done in recomputed.is_tested)
        titles = map(format_title, tables.metrics["metric"], tables.metrics["k"])
        named = zip(titles, recomputed.omitted, strict=True)
        stored.update(f"{title}: {part}" for title, part in named if part)
    state = check_signature(read, key)
    return Verification(read, state, tuple(dict.fromkeys(differences)), counts, stored)


def _compare_digest(card: Card) -> list[Difference]:
    digest = compute_card_digest(card)
    return [] if digest == card.digest else [Difference("digest of the card", card.digest, digest)]


def _compare_pages(card: Card, path: Path) -> list[Difference]:
    """Return the pages beside a card, as this version writes them, that are not of the card."""
    if card.audited.recbias != version("recbias") or path.name != "card.json":
        return []
    pages = {path.with_suffix(f".{kind}"): render_card_page(card, kind) for kind in ("md", "html")}
    return [
        Difference(f"file {page.name}", "changed", "the page of the card")
        for page, text in pages.items()
        if has_file(page) and read_text(page, "replace") != text
    ]


def _compare_files(card: Card, folder: Path) -> list[Difference]:
    """Return the files of a run that are not those of the card, or not those that it wrote."""
    manifest = read_manifest(folder / "manifest.json")
    computed = digest_files(folder, manifest)
    sources = {"": card.files, ": as written": {**computed, **(manifest.get("digests") or {})}}
    return [
        Difference(f"file {name}{word}", stated.get(name, "absent"), computed.get(name, "absent"))
        for word, stated in sources.items()
        for name in {**card.files, **computed}
        if stated.get(name) != computed.get(name)
        and not (word and card.files.get(name) != computed.get(name))
    ]


def recompute_run(run: RunTables) -> Recomputation:
    """Return the tables of a run, computed again from its values of units and bootstrap samples.

    Raises:
        MissingRun: The files of the run contradict each other.
    """
    frames = (run.metrics, run.groups, run.significance, run.per_unit, run.replicates)
    tables, seeds = StoredTables(*frames, run.manifest), run.manifest.get("seeds") or [0]
    try:
        with collect_warnings():  # those of the run, which are in its manifest
            return recompute_tables(tables, run.spec, _read_tests(run), seeds[0])
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        reason = f"its files contradict each other ({type(error).__name__}: {error})"
        raise MissingRun(reason, where=str(run.folder)) from error


def _read_tests(run: RunTables) -> list[PluginSpec]:
    """Return the tests of the run that recbias itself has; no code of the run is executed.

    Raises:
        MissingRun: A test has other settings than it can have.
    """
    tests = []
    for entry in run.manifest.get("tests", []):
        name, parameters = str(entry.get("name")), entry.get("parameters")
        if name not in TESTS:
            continue
        try:
            test: Any = REGISTRIES["tests"].load(name)
            plugin = TypeAdapter(test).validate_python(parameters)
        except (ValidationError, UserError) as error:
            message = f"manifest.json: the test {name} cannot have these settings: {error}"
            raise MissingRun(message, where=str(run.folder)) from error
        tests.append(PluginSpec("tests", name, str(entry.get("label")), plugin, parameters, ()))
    return tests


def compare_tables(run: RunTables, recomputed: Recomputation) -> list[Difference]:
    """Return the figures of the run's own tables that its other files contradict."""
    tests = (*KEYS, "test", "between", "a", "b")
    numbers = (*PAIR_COLUMNS, "p_adjusted", "family_size")
    pairs: list[tuple[str, Sequence[str], Sequence[str], Any, Any]] = [
        ("metrics.csv", KEYS, VALUE_COLUMNS, run.metrics, recomputed.metrics),
        ("groups.csv", KEYS, VALUE_COLUMNS, run.groups, recomputed.groups),
        ("significance.csv", tests, numbers, run.significance, recomputed.significance),
    ]
    return [
        difference
        for name, keys, columns, stored, computed in pairs
        if stored is not None and computed is not None
        for difference in compare_frames(name, keys, columns, stored, computed)
    ]


def _compare_written(run: RunTables) -> list[Difference]:
    """Return the reports of a run that are not as they were written; one may be absent."""
    stated = run.manifest.get("reports") or {}
    paths = [path for pattern in REPORTS for path in sorted(run.folder.glob(pattern))]
    computed = {
        path.relative_to(run.folder).as_posix(): digest_file(path)
        for path in paths
        if has_file(path)
    }
    return [
        Difference(f"file {name}: as written", stated[name], digest)
        for name, digest in computed.items()
        if name in stated and stated[name] != digest
    ]


def _compare_report(run: RunTables) -> list[Difference]:
    """Return what ``report.json`` states otherwise than the tables, if there is one."""
    path = run.folder / "report.json"
    if not has_file(path):
        return []
    report, fault = parse_report(read_text(path, "replace"))
    if fault:
        return [Difference("report.json", f"it is not the report of a run: {fault}", REPAIR)]
    return [
        Difference(f"report.json: {place}", *values)
        for place, *values in find_changed_rows(run, report)
    ]
