"""The content of a run's reports, shared by all formats."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import pandas as pd

from recbias.reports import messages
from recbias.reports.check_table import build_check_table
from recbias.reports.model_settings import build_settings_tables
from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.gallery import draw_gallery
from recbias.reports.plots.search_plots import draw_search_plots
from recbias.reports.published_tables.compare_published import build_reference_table
from recbias.reports.round_table import build_round_table
from recbias.reports.tradeoff_table import build_tradeoff_table
from recbias.reports.views import facts
from recbias.reports.views.comparisons import Comparisons, collect_comparisons
from recbias.reports.views.conclusions.conclude import split_conclusions
from recbias.reports.views.definitions import group_definitions
from recbias.reports.views.facts import build_models_table
from recbias.reports.views.grid import Table
from recbias.reports.views.groups.cards import build_cards
from recbias.reports.views.groups.group_tables import build_group_tables
from recbias.reports.views.headline import ALL
from recbias.reports.views.metric_agreement import build_agreement_tables
from recbias.reports.views.replies import build_reply_tables
from recbias.reports.views.run_tables import RunTables
from recbias.reports.views.significance import tabulate_comparisons
from recbias.reports.views.wide_tables import build_fold_table, build_summary

T = TypeVar("T")

MOST_MATRICES = 160_000
"""The number of characters of the matrices of wins that a page shows; more are files only."""


def _build_by(build: Callable[[RunTables], T]) -> cached_property[T]:
    """Return a property that is built from the run at its first use."""
    return cached_property(lambda content: build(content.run))


@dataclass(frozen=True, eq=False)
class Family:
    """The comparisons on a metric as a report shows them.

    The title has the dataset where the run has several; not every family has a matrix of wins.
    """

    title: str
    comparisons: Comparisons
    plot: Plot | None

    @property
    def outcome(self) -> str:
        """How many of the comparisons that have a p-value are significant."""
        return f"{self.title}: {self.comparisons.significant:,} of {self.comparisons.n_tested:,}"


@dataclass(frozen=True, eq=False)
class Content:
    """A run and the content of its reports: tables, facts, sentences and plots.

    Args:
        run: The run.
        reference: The comparison with published tables, or None.
        remarks: Reasons why published and measured values differ, and what is not compared, for
            each published table.
    """

    run: RunTables
    reference: pd.DataFrame | None = None
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)

    failures = _build_by(messages.list_failures)
    warnings = _build_by(messages.list_warnings)
    conclusions = _build_by(split_conclusions)
    data = _build_by(facts.describe_data)
    execution = _build_by(facts.describe_execution)
    definitions = _build_by(group_definitions)
    checks = _build_by(build_check_table)
    summary = _build_by(build_summary)
    settings_tables = _build_by(build_settings_tables)
    tradeoffs = _build_by(build_tradeoff_table)
    rounds = _build_by(build_round_table)
    cards = _build_by(build_cards)
    fold_table = _build_by(build_fold_table)
    agreement_tables = _build_by(build_agreement_tables)
    replies = _build_by(build_reply_tables)
    pairs = _build_by(tabulate_comparisons)
    models = _build_by(build_models_table)
    gallery = _build_by(draw_gallery)
    searches = _build_by(draw_search_plots)

    @cached_property
    def published(self) -> dict[str, Table]:
        """The comparison with each published table, by the name of that table."""
        return {
            name: build_reference_table(
                name, self.reference[self.reference["table"] == name], texts
            )
            for name, texts in self.remarks.items()
            if self.reference is not None
        }

    @cached_property
    def group_tables(self) -> list[Table]:
        """The fairness cards, and the tables of the other metrics by group and target."""
        titles = {card.metric.title for card in self.cards}
        cards = [table for card in self.cards for table in card.tables]
        return [*cards, *build_group_tables(self.run, omitted=titles)]

    @property
    def tables(self) -> list[Table]:
        """All tables of results in order."""
        tables = [
            *([self.summary] if self.summary.rows else []),
            *(*self.settings_tables, self.tradeoffs, self.rounds, self.checks, *self.group_tables),
            *self.published.values(),
            *(*self.agreement_tables, self.fold_table),
        ]
        return [table for table in tables if table is not None]

    @cached_property
    def plots(self) -> list[Plot]:
        """The plots of the results, with their dataset where there are several."""
        overview = self.gallery.overview
        if len({dataset for dataset, _ in overview}) < 2:
            return [plot for _, plot in overview]
        return [
            plot.entitle(f"{plot.title}, {'over all datasets' if dataset == ALL else dataset}")
            for dataset, plot in overview
        ]

    @property
    def missing_plots(self) -> tuple[str, ...]:
        """Why plots are missing, one sentence each."""
        return self.gallery.skipped

    @property
    def matrices(self) -> tuple[list[Family], list[Family]]:
        """The families with a matrix that a page shows, and those whose matrix is a file only."""
        families = [family for family in self.families if family.plot]
        sizes = itertools.accumulate(len(family.plot.svg) for family in families if family.plot)
        n_shown = sum(size <= MOST_MATRICES for size in sizes)
        return families[:n_shown], families[n_shown:]

    @cached_property
    def methods(self) -> list[str]:
        """The tests and corrections, each with the significant comparisons of its metrics."""
        outcomes: dict[str, list[str]] = {}
        undefined: dict[str, list[str]] = {}
        for family in self.families:
            method = f"Between {family.comparisons.between}: {family.comparisons.method()}"
            if family.comparisons.n_tested:
                outcomes.setdefault(method, []).append(family.outcome)
            else:
                undefined.setdefault(method, []).append(family.title)
        tested = [
            f"{method}. Significant: {'; '.join(texts)}." for method, texts in outcomes.items()
        ]
        not_tested = [
            f"{method}. Undefined: {'; '.join(titles)}." for method, titles in undefined.items()
        ]
        return [*tested, *not_tested]

    @cached_property
    def families(self) -> list[Family]:
        """The comparisons by metric and test, those with a plot first."""
        matrices = {
            id(comparisons): plot.entitle("Which model is better than which")
            for comparisons, plot in self.gallery.matrices
        }
        groups = collect_comparisons(self.run)
        several = len({group.place[0] for group in groups}) > 1
        families = [
            Family(
                f"{group.heading}, {group.place[0]}" if several else group.heading,
                group,
                matrices.get(id(group)),
            )
            for group in groups
        ]
        return sorted(families, key=lambda family: family.plot is None)
