from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from recbias.core.dataset import Attributes, Vocabulary
from recbias.core.errors import MissingFile
from recbias.data.declared import Folder
from recbias.data.movielens import MovieLens1M, Side


@pytest.mark.parametrize("is_relative", [False, True])
def test_side_columns_are_in_the_order_of_the_movies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_relative: bool
) -> None:
    (tmp_path / "ml-1m-side").mkdir()
    text = 'item_id,title,cast,overview\n9,Nine,A|B,"One.\nTwo."\n7,Seven,,\n8,Unknown,C,x\n'
    (tmp_path / "ml-1m-side" / "items.csv.gz").write_bytes(gzip.compress(text.encode()))
    items = Vocabulary.of(["7", "9", "11"])
    monkeypatch.chdir(tmp_path.parent)
    data = Path(tmp_path.name) if is_relative else tmp_path
    source, folder = MovieLens1M(side=("cast", "overview")), Folder(data / "ml-1m")
    columns = source.read_columns(folder, data, Attributes(items, pd.DataFrame(index=range(3))))
    assert {name: column.tolist() for name, column in columns.items()} == {
        "overview": [None, "One.\nTwo.", None],
        "cast": [None, "A|B", None],
    }


@pytest.mark.parametrize(
    ("side", "remedy"),
    [
        (("cast",), "item_id, overview, cast, director"),
        (("links",), "movieId, imdbId, tmdbId"),
        (("tags",), "remove tags from side"),
    ],
)
def test_a_missing_side_table_is_refused_with_its_columns(
    tmp_path: Path, side: tuple[Side, ...], remedy: str
) -> None:
    with pytest.raises(MissingFile) as caught:
        MovieLens1M(side=side).list_side_files(tmp_path)
    assert remedy in caught.value.remedy
