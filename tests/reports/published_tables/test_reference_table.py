from __future__ import annotations

import pandas as pd

from recbias.reports.published_tables.reference_table import build_reference_table


def test_the_table_has_one_row_per_compared_value() -> None:
    frame = pd.DataFrame(
        {
            "table": ["children/a3"],
            "system": ["ItemKNN"],
            "metric": ["nDCG"],
            "published": [0.2993],
            "measured": [0.2939],
            "difference": [-0.0054],
            "within": [True],
        }
    )
    table = build_reference_table(frame, ["a remark"])
    assert table.title == "Comparison with children/a3"
    assert [cell.text for cell in table.rows[0]] == [
        *("ItemKNN", "nDCG", "0.2993", "0.2939", "-0.0054", "yes"),
    ]
    assert table.notes == ("a remark",)


def test_a_comparison_without_a_match_has_a_note() -> None:
    table = build_reference_table(pd.DataFrame(columns=["table", "system"]), [])
    assert table.rows == ()
    assert "no model and metric" in table.notes[0]
