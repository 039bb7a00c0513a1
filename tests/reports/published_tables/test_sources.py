from __future__ import annotations

import re

import pytest

from recbias.core.errors import UnknownName
from recbias.reports.published import list_published, load_published, read_source, resolve_name


def test_all_tables_are_listed_by_paper_in_order() -> None:
    names = list_published()
    assert len(names) == 55  # 6 + 16 + 24 + 5 + 4
    assert [name for name in names if name.startswith("children/")][:7] == [
        *("children/3.1", "children/3.2", "children/5.1", "children/5.2", "children/5.3"),
        *("children/a1", "children/a2"),
    ]
    assert {name.partition("/")[0] for name in names} == {
        *("aab", "chbias", "children", "lmrec", "wok")
    }


@pytest.mark.parametrize(
    "name",
    [
        "children/a3",
        "children/A3",
        "children/A.3",
        "children/table-a-3",
        "children/tableA_3",
        "children/tableA_3_performance_ml_all_no_side",
        "Children/tableA_3_performance_ml_all_no_side.csv",
    ],
)
def test_a_table_has_many_spellings(name: str) -> None:
    assert resolve_name(name.removesuffix(".csv")) == "children/a3"


@pytest.mark.parametrize("name", ["children/a33", "childen/a3", "a3", ""])
def test_the_error_for_an_unknown_table_suggests_names(name: str) -> None:
    with pytest.raises(UnknownName, match="no published table") as caught:
        load_published(name)
    assert re.search(r"did you mean|the valid names", caught.value.remedy)


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


def test_text_values_stay_text() -> None:
    assert "cosine" in load_published("children/a2")["value"].tolist()
