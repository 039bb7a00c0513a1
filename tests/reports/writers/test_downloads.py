from __future__ import annotations

import base64
import csv
import io
import math

from recbias.reports.environments import list_downloads, render_csv, render_latex
from recbias.reports.wording import Cell, Table, make_columns

TABLE = Table(
    "nDCG@10, by <b>",
    make_columns(("model", "value", "95% interval", "p", "n"), numeric={"value", "p"}),
    (
        (
            Cell("a, b", mark="x"),
            Cell("0.3333", 1 / 3, mark="y"),
            Cell("0.1 to 0.5", 0.1),
            Cell("< 0.0001", 2.5e-7),
            Cell("1,682", 1682.0),
        ),
        (Cell('"c"'), Cell("n/a", math.nan), Cell(""), Cell("1.0", 1.0), Cell("2", 2.0)),
    ),
)


def test_a_table_as_csv_has_unrounded_numbers_and_no_marks() -> None:
    assert list(csv.reader(io.StringIO(render_csv(TABLE)))) == [
        ["model", "value", "95% interval", "p", "n"],
        ["a, b", "0.333333333333333", "0.1 to 0.5", "2.5e-07", "1682"],
        ['"c"', "", "", "1", "2"],
    ]


def test_a_link_holds_the_file() -> None:
    links = list_downloads(TABLE)
    assert [(link.label, link.name) for link in links] == [
        ("CSV", "ndcg-10-by-b.csv"),
        ("LaTeX", "ndcg-10-by-b.tex"),
    ]
    contents = [base64.b64decode(link.address.partition("base64,")[2]).decode() for link in links]
    assert contents == [render_csv(TABLE), render_latex(TABLE)]
