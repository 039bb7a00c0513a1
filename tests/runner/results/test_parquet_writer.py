from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from recbias.runner.results import TableWriter, encode_column, encode_constant

TEXTS = np.array(["a,b", 'quote"', "🎬"], dtype=object)


def test_chunks_form_one_table(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with TableWriter(path) as writer:
        writer.add({"model": encode_constant("a", 2), "rank": np.array([1, 2])})
        writer.add({"model": encode_constant("a", 0), "rank": np.empty(0, dtype=np.int64)})
        writer.add({"model": encode_constant("b", 1), "rank": np.array([3])})
    table = pd.read_parquet(path)
    assert table["model"].tolist() == ["a", "a", "b"]
    assert table["rank"].tolist() == [1, 2, 3]


def test_without_rows_no_file_is_created(tmp_path: Path) -> None:
    with TableWriter(tmp_path / "t.parquet") as writer:
        writer.add({"rank": np.empty(0)})
    assert not (tmp_path / "t.parquet").exists()


@pytest.mark.parametrize("codes", [[0, 1, 2], [2, 2], []])
def test_a_column_is_encoded_by_codes_into_texts(codes: list[int]) -> None:
    column = encode_column(np.array(codes, dtype=np.int64), TEXTS)
    assert column.to_pylist() == [TEXTS[code] for code in codes]
