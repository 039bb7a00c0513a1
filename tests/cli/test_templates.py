from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from recbias.cli.templates import render_prompts_csv
from support.commands import run_recbias

SENTENCES = """
words:
  name: [{gender: female, words: [Ann, "Bea, the elder"]}, {gender: male, words: [Cem]}]
templates: {gifts: ["A gift for [name]?", "Find something for [name]"]}
"""


def test_prompts_of_a_file_are_a_csv_table(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SENTENCES)
    table = pd.read_csv(io.StringIO(render_prompts_csv(str(path))))
    assert len(table) == 6
    assert table.columns[:2].tolist() == ["query_id", "text"]
    assert table.loc[0, "text"] == "A gift for Ann?"
    assert table.loc[1, "query_id"] == "gifts-01:Bea, the elder"
    assert set(table["gender"]) == {"female", "male"}


def test_packaged_set_is_printed_completely(tmp_path: Path) -> None:
    result = run_recbias("show", "restaurants", "--prompts", folder=tmp_path)
    assert result.code == 0
    table = pd.read_csv(io.StringIO(result.out))
    assert len(table) == 3834
    assert table["query_id"].is_unique


def test_name_of_neither_a_set_nor_a_file_is_rejected(tmp_path: Path) -> None:
    result = run_recbias("show", "restaurant", "--prompts", folder=tmp_path)
    assert result.code == 2
    assert "did you mean restaurants?" in result.err
