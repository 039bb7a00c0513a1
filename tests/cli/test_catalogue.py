from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest

from recbias.cli.catalogue import KINDS, describe, list_entries
from recbias.config.settings import list_parameters
from recbias.config.source import list_specs
from recbias.core.errors import UnknownName
from recbias.registry import REGISTRIES
from recbias.reports.published import load_published
from support.commands import invoke_recbias

NAMES = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.table]


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_of_a_kind_has_a_one_line_summary(kind: str) -> None:
    entries = list_entries(kind)
    assert len({name for name, _ in entries}) == len(entries)
    assert all(summary.strip() and "\n" not in summary for _, summary in entries)
    if kind in REGISTRIES:
        assert [name for name, _ in entries] == REGISTRIES[kind].names()


@pytest.mark.parametrize(("kind", "name"), NAMES, ids=[f"{kind}-{name}" for kind, name in NAMES])
def test_every_plugin_is_described_with_its_parameters(kind: str, name: str) -> None:
    text = describe(name, 79)
    assert f"{name} ({REGISTRIES[kind].kind})\n" in text
    for row in list_parameters(REGISTRIES[kind].load(name)):
        assert f"\n    {row.name}: " in text
        assert row.doc, f"{name}: {row.name} has no description"
    assert "``" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


@pytest.mark.parametrize("name", list(REGISTRIES["metrics"].table))
def test_metric_is_described_with_formula_direction_range_and_source(name: str) -> None:
    text = describe(name)
    for title in ("Direction: ", "Range: ", "Needs: ", "Source: "):
        assert f"\n{title}" in text
    assert "\n    " in text.partition("Parameters:")[0], "no formula"


def test_spec_is_shown_with_its_content_and_command() -> None:
    text = describe("papers/aab")  # as `recbias run` accepts it
    path = list_specs()["papers/aab/ml-1m-gender"]
    assert text.startswith("papers/aab/ml-1m-gender (spec)\n")
    assert text.endswith(path.read_text("utf-8").rstrip())
    assert "recbias init papers/aab/ml-1m-gender" in text


def test_published_table_is_shown_with_its_values() -> None:
    text = describe("aab/3")
    published = load_published("aab/3")
    rows = [line.split() for line in text.splitlines() if re.search(r" R-RIPA +-?[0-9]", line)]
    assert [float(row[-2]) for row in rows] == published.loc[
        published["metric"] == "R-RIPA", "value"
    ].tolist()
    assert "recbias compare RUN --reference aab/3" in text
    assert "dataset: ML_S-bar" in describe("Children/A.3")


@pytest.mark.parametrize("spelling", ["restaurants", "Restaurants"])
def test_set_of_templates_is_described_with_its_contents(spelling: str) -> None:
    text = describe(spelling, 79)
    assert text.startswith("restaurants (templates)\n")
    assert "3,834 prompts" in text
    assert "\nnames: 18 sentences, 1,566 prompts\n" in text
    assert "    [name]: 87 words (Allison, Anne, " in text
    assert "    race: white (44), black (43)\n" in text
    assert "    religion: christian (1), muslim (1), jewish (1)\n" in text
    assert '    "I promised [name] a nice meal out"' in text
    assert "Tables 6 and 7" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 79


def test_packaged_set_is_printed_completely(tmp_path: Path) -> None:
    result = invoke_recbias("show", "restaurants", "--prompts", folder=tmp_path)
    assert result.code == 0
    table = pd.read_csv(io.StringIO(result.out))
    assert len(table) == 3834
    assert table["query_id"].is_unique


def test_name_of_neither_a_set_nor_a_file_is_rejected(tmp_path: Path) -> None:
    result = invoke_recbias("show", "restaurant", "--prompts", folder=tmp_path)
    assert result.code == 2
    assert "did you mean restaurants?" in result.err


def test_prompt_is_shown_with_its_template_and_history() -> None:
    lines = describe("watch-history", 79).splitlines()
    assert lines[0] == "watch_history (prompt)"
    assert "    {history}" in lines
    assert "    - Leave out films released after {year_limit}." in lines
    assert "    {history}: all items, oldest first: - {title} ({year})" in lines
    assert any(line.startswith("Source: ") for line in lines)


def test_packaged_terms_are_shown_with_groups_and_counts_beside_the_dataset_of_their_name() -> (
    None
):
    text = describe("chbias", 79)
    assert text.startswith("chbias (dataset)")
    page = text[text.index("chbias (terms)") :]
    assert "    age: old and young\n      7 target terms: 老人/年轻人, " in page
    assert "      29 attribute terms: 丑/帅, " in page  # of gender
    assert "Source: Zhao et al." in page
    assert [name for name, _ in list_entries("terms")] == ["chbias"]
    with pytest.raises(UnknownName) as error:
        describe("chbiass")
    assert "chbias" in error.value.remedy
