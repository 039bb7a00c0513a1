from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from recbias.core.errors import MalformedLine, MissingFile
from recbias.data.sentences import FILE, CrowSPairs
from recbias.testing import check_dataset

RNG = np.random.default_rng(0)
HEADER = ",sent_more,sent_less,stereo_antistereo,bias_type\n"
ROWS = (
    '0,"Old people, mostly, walk.","Young people, mostly, walk.",stereo,age\n'
    "1,A young driver.,An old driver.,antistereo,age\n"
)


def write(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / FILE).write_text(text)
    return folder.parent


def test_the_disadvantaged_group_is_t1(tmp_path: Path) -> None:
    data = write(tmp_path / "crows_pairs", HEADER + ROWS)
    check_dataset(CrowSPairs(), data=data)
    dataset = CrowSPairs().load(data, RNG)
    assert dataset.sentences is not None
    frame = dataset.sentences.frame
    assert frame["group"].tolist() == ["sent_more", "sent_less"] * 2
    assert frame["target_set"].tolist() == ["T1", "T2", "T2", "T1"]
    assert frame["text"].iloc[0] == "Old people, mostly, walk."
    assert frame["pair_id"].tolist() == ["age-1", "age-1", "age-2", "age-2"]
    assert set(frame["part"]) == {"test"}


def test_faults_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile) as caught:
        CrowSPairs().load(tmp_path, RNG)
    assert "recbias data fetch crows_pairs" in caught.value.remedy
    data = write(tmp_path / "crows_pairs", HEADER + ROWS.replace("antistereo", "neither"))
    with pytest.raises(MalformedLine, match="stereo_antistereo is 'neither'") as fault:
        CrowSPairs().load(data, RNG)
    assert fault.value.where.endswith(":3")


@pytest.mark.real_data
def test_the_published_file_has_its_known_counts(real_data: Path) -> None:
    if not (real_data / "biasmeter" / FILE).is_file():
        pytest.skip("no CrowS-Pairs in the folder of real data")
    dataset = CrowSPairs().load(real_data, RNG)
    assert (dataset.counts["test"], dataset.counts["test_pairs"]) == (3016, 1508)
    assert dataset.sentences is not None
    directions = dataset.sentences.frame["stereo_antistereo"].value_counts()
    assert directions.to_dict() == {"stereo": 2580, "antistereo": 436}
    assert dataset.sentences.frame["category"].nunique() == 9
