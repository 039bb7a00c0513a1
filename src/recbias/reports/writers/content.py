"""What every report of a run shows, worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from recbias.reports.plots.gallery import Gallery, Plot, draw_gallery
from recbias.reports.plots.search_plots import SearchPlots, draw_search_plots
from recbias.reports.views.findings import phrase
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.headline import ALL
from recbias.reports.views.rounding import decimals, shown
from recbias.reports.views.run_tables import RunTables, rows_of
from recbias.reports.views.wide_tables import by_part, parts, summary


@dataclass(frozen=True, eq=False)
class Content:
    """A run and what its reports show.

    Args:
        run: The run.
        reference: The comparison with published figures, or None.
        remarks: What cannot be equal in that comparison, and what is left out of it.
    """

    run: RunTables
    reference: pd.DataFrame | None = None
    remarks: Sequence[str] = ()

    @cached_property
    def gallery(self) -> Gallery:
        """The figures."""
        return draw_gallery(self.run)

    @cached_property
    def summary(self) -> Table:
        """The headline."""
        return summary(self.run)

    @cached_property
    def by_part(self) -> list[Table]:
        """Figures per query label and item attribute value."""
        return by_part(self.run)

    @cached_property
    def parts(self) -> Table | None:
        """Every dataset, seed and fold, where there are several."""
        return parts(self.run)

    @cached_property
    def published(self) -> Table | None:
        """Our figures beside published ones, where a table was named."""
        if self.reference is None:
            return None
        return reference_table(self.reference, self.remarks)

    @cached_property
    def searches(self) -> tuple[SearchPlots, ...]:
        """The searches for settings, with their figures."""
        return draw_search_plots(self.run)

    @cached_property
    def models(self) -> Table:
        """The models with their parameters."""
        columns = (Column("model"), Column("plug-in"), Column("parameters"))
        rows = [
            (
                Cell(str(each.get("label"))),
                Cell(str(each.get("name"))),
                Cell(_parameters(each)),
            )
            for each in self.run.manifest.get("models", [])
        ]
        return Table("Models", columns, tuple(rows))

    @property
    def tables(self) -> list[Table]:
        """The tables of figures, in order."""
        found = [self.summary, *self.by_part, self.published, self.parts]
        return [each for each in found if each is not None]

    def figure_title(self, dataset: str, figure: Plot) -> str:
        """Return a figure's title, with its dataset where there are several."""
        several = len({label for label, _ in self.gallery.overview}) > 1
        place = "over all datasets" if dataset == ALL else dataset
        return f"{figure.title}, {place}" if several else figure.title


def _parameters(model: Mapping[str, Any]) -> str:
    """Return the settings of a model in words, and which of them were searched for."""
    set_ = phrase(model.get("parameters") or {})
    searched = phrase([each.replace("_", " ") for each in model.get("searched") or []])
    return "; ".join(filter(None, [set_, f"searched for: {searched}" if searched else ""]))


def reference_table(frame: pd.DataFrame, remarks: Sequence[str]) -> Table:
    """Return the rows of ``reference.csv`` as a table."""
    records = rows_of(frame)
    figures = ("published", "measured", "difference")
    places = decimals(row[each] for row in records for each in figures)
    rows = [
        (
            Cell(row["system"]),
            Cell(row["metric"]),
            *(Cell(shown(row[each], places), row[each]) for each in figures),
            Cell("yes" if row["within"] else "no"),
        )
        for row in records
    ]
    name = str(frame["table"].iloc[0]) if len(frame) else "a published table"
    heads = [Column("system"), Column("metric")]
    heads += [Column(each, numeric=True) for each in figures]
    notes = remarks if rows else ["No model and metric of this run stand in it.", *remarks]
    return Table(f"Beside {name}", (*heads, Column("within")), tuple(rows), tuple(notes))
