from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import MissingFile
from recbias.data.books_yelp import Folder, find_folder, require_files
from recbias.formats.delimited import Layout
from recbias.formats.json_files import Fields


@pytest.mark.parametrize("subfolder", ["ml-10m", "ml-10m/ml-10M100K", "ml-10M100K"])
def test_the_folder_of_the_publishers_archive_is_found(tmp_path: Path, subfolder: str) -> None:
    folder = tmp_path / subfolder
    folder.mkdir(parents=True)
    (folder / "ratings.dat").touch()
    assert find_folder("ml-10m", tmp_path, holds="ratings.dat", inner="ml-10M100K") == folder


def test_a_missing_dataset_is_expected_under_its_name_and_can_be_fetched(tmp_path: Path) -> None:
    assert find_folder("ml-1m", tmp_path, holds="ratings.dat") == tmp_path / "ml-1m"
    with pytest.raises(MissingFile, match="ml-1m lacks the file") as caught:
        require_files([tmp_path / "ml-1m" / "ratings.dat"], fetch="ml-1m")
    assert "recbias data fetch ml-1m" in caught.value.remedy
    assert "--data" in caught.value.remedy


def test_a_folder_counts_the_malformed_lines_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\ntwo\n3\n")
    (tmp_path / "b.json").write_text('{"x": 1}\n{"x": 2\n{"x": 3\n')
    folder = Folder(tmp_path, "skip")
    with collect_warnings():
        assert len(folder.read("a.csv", Layout(columns={"x": "int32"}))) == 2
        assert len(folder.read("b.json", Fields(types={"x": pa.float64()}))) == 1
    assert folder.counts == {"bad_lines": 3}
