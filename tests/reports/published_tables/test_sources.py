from __future__ import annotations

import pytest

from recbias.reports.published import list_published, load_published, read_source


def test_values_are_loaded_as_numbers() -> None:
    frame = load_published("children/a3")
    assert len(frame) == 64  # 16 recommenders, 4 metrics
    rows = frame[(frame["system"] == "ItemKNN") & (frame["metric"] == "nDCG")]
    assert rows["value"].tolist() == [0.2993]
    assert rows["cutoff"].tolist() == [10.0]
    assert rows["system_printed"].tolist() == ["Item-kNN"]


@pytest.mark.parametrize("name", list_published())
def test_every_table_has_a_description_and_can_be_loaded(name: str) -> None:
    table = read_source(name)
    assert table.name == name
    assert table.title
    assert "20" in table.citation
    frame = load_published(name)
    assert len(frame) > 0
    assert not frame.columns.duplicated().any()
    if table.comparable:
        assert {"system", "metric", "cutoff", "value", "std"} <= set(frame.columns)
        assert table.joins or not table.metrics or set(table.metrics) & {*frame["metric"]}
