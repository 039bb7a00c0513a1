"""The content of a run's reports, shared by all formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from recbias.reports.markup import Safe
from recbias.reports.plots.drawing.svg import Plot
from recbias.reports.plots.gallery import Gallery, draw_gallery
from recbias.reports.plots.search_plots import SearchPlots, draw_search_plots
from recbias.reports.published_tables.reference_table import build_reference_table
from recbias.reports.views.comparisons import Comparisons, collect_comparisons
from recbias.reports.views.definitions import Definition, collect_definitions
from recbias.reports.views.facts import (
    Fact,
    describe_data,
    describe_execution,
    list_failures,
    list_warnings,
)
from recbias.reports.views.findings import summarize_findings
from recbias.reports.views.grid import Table
from recbias.reports.views.headline import ALL
from recbias.reports.views.pair_tables import tabulate_pairs
from recbias.reports.views.provenance import build_models_table
from recbias.reports.views.run_tables import RunTables
from recbias.reports.views.trials import Search
from recbias.reports.views.wide_tables import build_fold_table, build_group_tables, build_summary


@dataclass(frozen=True, eq=False)
class TitledPlot:
    """A plot and the title that a report gives it.

    Args:
        figure: The plot.
        title: Its title.
    """

    figure: Plot
    title: str

    @property
    def name(self) -> str:
        """The name of its file without ``.svg``."""
        return self.figure.name

    @property
    def caption(self) -> str:
        """How to read it."""
        return self.figure.caption

    @property
    def svg(self) -> Safe:
        """The SVG element."""
        return self.figure.inline()


@dataclass(frozen=True, eq=False)
class Family:
    """The comparisons on a metric as a report shows them.

    Args:
        title: The metric, with its dataset where the run has several.
        comparisons: The comparisons.
        plot: The matrix of wins, or None where it is not plotted.
    """

    title: str
    comparisons: Comparisons
    plot: TitledPlot | None

    @property
    def outcome(self) -> str:
        """How many comparisons are significant."""
        return f"{self.comparisons.significant:,} of {len(self.comparisons.rows):,} significant"

    @cached_property
    def pairs(self) -> Table:
        """One row per comparison."""
        return tabulate_pairs(self.comparisons)


@dataclass(frozen=True, eq=False)
class PlottedSearch:
    """A hyperparameter search with its plots.

    Args:
        search: The search.
        plots: Its plots.
    """

    search: Search
    plots: tuple[TitledPlot, ...]


@dataclass(frozen=True, eq=False)
class Content:
    """A run and the content of its reports.

    Args:
        run: The run.
        reference: The comparison with a published table, or None.
        remarks: Reasons why published and measured values differ, and what is not compared.
    """

    run: RunTables
    reference: pd.DataFrame | None = None
    remarks: Sequence[str] = ()

    @cached_property
    def failures(self) -> list[str]:
        """The failures, one line each."""
        return list_failures(self.run)

    @cached_property
    def warnings(self) -> list[str]:
        """The warnings, one line each."""
        return list_warnings(self.run)

    @cached_property
    def findings(self) -> list[str]:
        """The main results as sentences."""
        return summarize_findings(self.run)

    @cached_property
    def data(self) -> list[Fact]:
        """The data and settings of the run."""
        return describe_data(self.run)

    @cached_property
    def execution(self) -> list[Fact]:
        """How the run was executed."""
        return describe_execution(self.run)

    @cached_property
    def definitions(self) -> list[Definition]:
        """The metrics."""
        return [*collect_definitions(self.run).values()]

    @cached_property
    def summary(self) -> Table:
        """The headline results."""
        return build_summary(self.run)

    @cached_property
    def group_tables(self) -> list[Table]:
        """Results by query label and item attribute."""
        return build_group_tables(self.run)

    @cached_property
    def fold_table(self) -> Table | None:
        """Every dataset, seed and fold, or None if the run has one of each."""
        return build_fold_table(self.run)

    @cached_property
    def published(self) -> Table | None:
        """The comparison with a published table, or None."""
        if self.reference is None:
            return None
        return build_reference_table(self.reference, self.remarks)

    @property
    def tables(self) -> list[Table]:
        """All tables of results in order."""
        tables = [self.summary, *self.group_tables, self.published, self.fold_table]
        return [table for table in tables if table is not None]

    @cached_property
    def gallery(self) -> Gallery:
        """The plots of the run."""
        return draw_gallery(self.run)

    @cached_property
    def plots(self) -> list[TitledPlot]:
        """The plots of the results, with their dataset where there are several."""
        overview = self.gallery.overview
        several = len({dataset for dataset, _ in overview}) > 1
        plots = []
        for dataset, figure in overview:
            suffix = "over all datasets" if dataset == ALL else dataset
            title = f"{figure.title}, {suffix}" if several else figure.title
            plots.append(TitledPlot(figure, title))
        return plots

    @cached_property
    def missing_plots(self) -> tuple[str, ...]:
        """Why plots are missing, one sentence each."""
        return self.gallery.skipped

    @cached_property
    def families(self) -> list[Family]:
        """The comparisons by metric and test, those with a plot first."""
        matrices = {
            id(comparisons): TitledPlot(figure, "Which model is better than which")
            for comparisons, figure in self.gallery.matrices
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

    @cached_property
    def search_figures(self) -> tuple[SearchPlots, ...]:
        """The hyperparameter searches and their plots."""
        return draw_search_plots(self.run)

    @cached_property
    def searches(self) -> list[PlottedSearch]:
        """The hyperparameter searches with titled plots."""
        return [
            PlottedSearch(
                result.search,
                tuple(TitledPlot(figure, figure.title) for figure in result.plots),
            )
            for result in self.search_figures
        ]

    @cached_property
    def models(self) -> Table:
        """The models with their settings."""
        return build_models_table(self.run)
