"""Tables with one row per comparison."""

from __future__ import annotations

from recbias.reports.views.comparisons import Comparisons, Row, is_significant
from recbias.reports.views.grid import Cell, Column, Table
from recbias.reports.views.rounding import (
    count_decimals,
    format_interval,
    format_p_value,
    format_value,
)


def tabulate_pairs(comparisons: Comparisons) -> Table:
    """Return a table with one row per comparison."""
    places = count_decimals(row["difference"] for row in comparisons.rows)
    numbers = ("difference", "95% interval", "statistic", "p", "corrected p", "effect size")
    columns = (
        *(Column("a"), Column("b")),
        *(Column(name, numeric=True) for name in numbers),
        Column("significant"),
    )
    rows = tuple(_tabulate_pair(row, places) for row in comparisons.rows)
    return Table(f"Comparisons on {comparisons.title}", columns, rows)


def _tabulate_pair(row: Row, places: int) -> tuple[Cell, ...]:
    model = f"{row['model']}: " if row["model"] else ""
    return (
        Cell(f"{model}{row['a']}"),
        Cell(str(row["b"])),
        Cell(format_value(row["difference"], places), row["difference"]),
        Cell(format_interval(row["ci_low"], row["ci_high"], places), row["ci_low"]),
        Cell(format_value(row["statistic"], 2), row["statistic"]),
        Cell(format_p_value(row["p"]), row["p"]),
        Cell(format_p_value(row["p_adjusted"]), row["p_adjusted"]),
        Cell(format_value(row["effect_size"], 2), row["effect_size"]),
        Cell("yes" if is_significant(row) else "no"),
    )
