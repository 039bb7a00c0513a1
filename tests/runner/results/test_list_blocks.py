"""Lists are written in blocks of queries, whose number changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet

import recbias
from recbias.runner.results import TableWriter
from support.specs import make_small_spec


def count_groups(run: Path) -> tuple[int, int]:
    """Return the number of row groups of the lists of a run, and the rows of the largest."""
    metadata = parquet.ParquetFile(run / "lists.parquet").metadata
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return len(rows), max(rows)


def test_lists_that_are_written_in_blocks_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_small_spec(models=["MostPop", "Random"])
    whole = recbias.run(spec, out=tmp_path)
    monkeypatch.setattr(TableWriter, "GROUP", 64)
    blocks = recbias.run(spec, out=tmp_path / "blocks")
    assert whole.lists is not None
    assert blocks.lists is not None
    assert blocks.lists.equals(whole.lists)
    n_groups, _ = count_groups(whole.folder)
    assert n_groups == 2  # one for each model
    n_groups, most_rows = count_groups(blocks.folder)
    assert n_groups > 4
    assert most_rows <= 64
