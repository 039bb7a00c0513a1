from __future__ import annotations

import math

from recbias.reports.views.comparisons import Comparisons
from recbias.reports.views.pair_tables import tabulate_pairs


def test_a_comparison_is_a_row_with_its_numbers() -> None:
    row = {
        "model": "",
        "a": "<x>",
        "b": "y",
        "difference": -0.1,
        "ci_low": math.nan,
        "ci_high": math.nan,
        "statistic": -2.0,
        "p": 0.01,
        "p_adjusted": 0.21,
        "effect_size": math.nan,
        "significant": "False",
    }
    rows = (row, row | {"model": "m", "ci_low": -0.3, "ci_high": 0.1, "significant": "True"})
    table = tabulate_pairs(Comparisons("HR", "higher", ("d", "1", "1"), "t", "models", "", rows))
    assert table.title == "Comparisons on HR"
    assert [[cell.text for cell in cells] for cells in table.rows] == [
        ["<x>", "y", "-0.1000", "", "-2.00", "0.01", "0.21", "n/a", "no"],
        ["m: <x>", "y", "-0.1000", "-0.3000 to 0.1000", "-2.00", "0.01", "0.21", "n/a", "yes"],
    ]
    assert [cell.value for cell in table.rows[1]][2:7] == [-0.1, -0.3, -2.0, 0.01, 0.21]
