"""The notes below the tables of ``recbias compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from recbias.reports.views.rounding import format_count
from recbias.runner.comparison.aligned_names import Renaming

_TESTS = {
    "paired_t": "paired t-test",
    "paired_bootstrap": "(values of whole sets) paired bootstrap",
}
"""The tests in words."""


def find_common_size(table: pd.DataFrame) -> int | None:
    """Return the number of units if all tests have the same."""
    sizes = set(table.loc[table["p"].notna(), "n"])
    return int(sizes.pop()) if len(sizes) == 1 else None


def count_family(table: pd.DataFrame) -> int:
    """Return the number of tests that p-values are adjusted for."""
    return int(table["family_size"].max()) if len(table) else 0


def explain_tests(table: pd.DataFrame, correction: str) -> list[str]:
    """Return what the columns of the table of ``compare_runs`` mean."""
    tests = count_family(table)
    notes = ["Difference: the later run minus the earlier one, with its 95% interval."]
    if tests:
        size = find_common_size(table)
        units = "the n units" if size is None else f"the {format_count(size, 'unit')}"
        names = [name for test, name in _TESTS.items() if test in {*table["test"]}]
        notes[0] += (
            f" p: {' or '.join(names)} over {units} that both runs have; "
            f"p adjusted: {correction} over {format_count(tests, 'test')}."
        )
    if table["p"].isna().any():
        notes.append(
            "No p: the value has no units, the runs have different units, or all units differ by "
            "the same amount."
        )
    return notes


def explain_gaps(table: pd.DataFrame, correction: str) -> list[str]:
    """Return what the columns of the table of ``compare_gaps`` mean."""
    tests = format_count(count_family(table), "test")
    return [
        "Gap: one group minus another. Difference: gap of the later run minus gap of the earlier.",
        (
            "p: t-test of the change of each unit, paired if both groups have the same units, "
            f"else Welch's; p adjusted: {correction} over {tests}."
        ),
    ]


def explain_no_change(excluded: Sequence[Mapping[str, Any]]) -> str:
    """Return what to say of runs of which no shared value changed.

    Args:
        excluded: How many ``values`` each ``run`` has that another one is ``lacking``.

    >>> explain_no_change([])
    'nothing changed'
    >>> explain_no_change([{"run": "a", "lacking": "b", "values": 2}])
    'no value that both have changed; 2 results of a without a counterpart in b'
    """
    if not excluded:
        return "nothing changed"
    missing = [
        f"{format_count(row['values'], 'result')} of {row['run']} without a counterpart in "
        f"{row['lacking']}"
        for row in excluded
    ]
    return f"no value that both have changed; {', '.join(missing)}"


def explain_renamings(renamings: Sequence[Renaming]) -> list[str]:
    """Return a sentence on entries that are compared although their automatic names differ."""
    pairs = dict.fromkeys(
        f"{item.name_b} of {item.b} is {item.name_a} of {item.a}" for item in renamings
    )
    return [f"Equal settings, other automatic names: {'; '.join(pairs)}."] if pairs else []


def explain_rounds(tables: Sequence[pd.DataFrame | None]) -> str:
    """Return a sentence on the rounds of feedback of runs; blank if none has any.

    Args:
        tables: ``rounds.csv`` of each run, or None.
    """
    existing = [table for table in tables if table is not None]
    if not existing:
        return ""
    first, *others = existing
    is_same = len(existing) == len(tables) and all(first.equals(table) for table in others)
    verdict = "are the same" if is_same else "differ"
    return f"The rounds of feedback after the first {verdict}; they are in rounds.csv, not here."
