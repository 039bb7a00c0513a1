from __future__ import annotations

from pathlib import Path

import pytest

from recbias.data.declared import find_folder


@pytest.mark.parametrize("subfolder", ["ml-10m", "ml-10m/ml-10M100K", "ml-10M100K"])
def test_the_folder_of_the_publishers_archive_is_found(tmp_path: Path, subfolder: str) -> None:
    folder = tmp_path / subfolder
    folder.mkdir(parents=True)
    (folder / "ratings.dat").touch()
    assert find_folder("ml-10m", tmp_path, holds="ratings.dat", inner="ml-10M100K") == folder
