from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from recbias.formats.sizes import estimate_table


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_the_size_of_a_table_is_that_of_its_cells(tmp_path: Path, name: str) -> None:
    path, frame = tmp_path / name, pd.DataFrame({"id": ["1", "2"], "text": ["ab", "c\u4e2d"]})
    if name == "a.csv":
        frame.to_csv(path, index=False)
        cell_bytes = path.stat().st_size
    else:
        frame.to_json(path, orient="records", lines=True)
        cell_bytes = 1 + 2 + 1 + 4 + 2  # and the ends of the lines
    size = estimate_table(path)
    assert size is not None
    assert size.text_bytes == pytest.approx(cell_bytes, abs=2)
    assert size.cells == 2 * size.rows
