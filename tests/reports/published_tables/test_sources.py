from __future__ import annotations

import re

import pytest

from recbias.core.errors import UnknownName
from recbias.reports.published_tables.sources import (
    about,
    canonical,
    list_published,
    load_published,
)


def test_every_paper_is_there_in_order() -> None:
    names = list_published()
    assert len(names) == 55  # 6 + 16 + 24 + 5 + 4
    assert [each for each in names if each.startswith("children/")][:7] == [
        *("children/3.1", "children/3.2", "children/5.1", "children/5.2", "children/5.3"),
        *("children/a1", "children/a2"),
    ]
    assert {each.partition("/")[0] for each in names} == {
        *("aab", "chbias", "children", "lmrec", "wok"),
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
    assert canonical(name.removesuffix(".csv")) == "children/a3"


@pytest.mark.parametrize(
    ("name", "known"), [("children/table-5-1", "children/5.1"), ("wok/table2", "wok/2")]
)
def test_numbers_keep_their_point(name: str, known: str) -> None:
    assert canonical(name) == known


@pytest.mark.parametrize("name", ["children/a33", "childen/a3", "a3", ""])
def test_an_unknown_table_is_answered_with_the_nearest(name: str) -> None:
    with pytest.raises(UnknownName, match="no published table") as caught:
        load_published(name)
    assert re.search(r"did you mean|the valid names", caught.value.remedy)


def test_a_table_is_loaded_with_figures_as_numbers() -> None:
    frame = load_published("children/a3")
    assert len(frame) == 64  # 16 recommenders, 4 metrics
    found = frame[(frame["system"] == "ItemKNN") & (frame["metric"] == "nDCG")]
    assert found["value"].tolist() == [0.2993]
    assert found["cutoff"].tolist() == [10.0]
    assert found["system_printed"].tolist() == ["Item-kNN"]


@pytest.mark.parametrize("name", list_published())
def test_every_table_is_known_and_can_be_read(name: str) -> None:
    found = about(name)
    assert found.name == name
    assert found.title
    assert "20" in found.citation
    frame = load_published(name)
    assert len(frame) > 0
    assert not frame.columns.duplicated().any()
    if found.comparable:
        assert {"system", "metric", "cutoff", "value", "std"} <= set(frame.columns)
        assert set(found.metrics) & {*frame["metric"]} or not found.metrics


def test_settings_in_text_are_left_as_text() -> None:
    assert "cosine" in load_published("children/a2")["value"].tolist()
