from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import inside, recbias

SPEC = """\
name: small
dataset: {name: demo, n_users: 50, n_items: 30, filters: [{name: sample_users, n: 20}]}
models: [MostPop]
metrics: [ARP]
"""


def test_describe_counts_the_demo_world(tmp_path: Path) -> None:
    said = recbias("data", "describe", "demo", folder=tmp_path)
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[:4] == ["demo:", "  counts:", "    users: 600", "    items: 300"]
    assert "    gender:" in lines


def test_describe_applies_the_filters_of_a_spec(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SPEC)
    said = inside("data", "describe", "small.yaml", folder=tmp_path)
    assert said.code == 0, said.err
    assert "    users: 20" in said.out.splitlines()


@pytest.mark.parametrize(
    ("name", "found", "nearest"),
    [
        ("dmeo", "no dataset is called 'dmeo'", "demo"),
        ("ml1", "no dataset is called 'ml1'", "ml-1m"),
        ("nothing.yaml", "nothing.yaml: no such file", "nothing.yaml"),
        ("ml-1m", "ml-1m", "recbias data fetch ml-1m"),
    ],
)
def test_describe_of_what_is_not_there_says_what_to_do(
    tmp_path: Path, name: str, found: str, nearest: str
) -> None:
    said = inside("data", "describe", name, folder=tmp_path)
    assert (said.code, said.out) == (2, "")
    error, help_ = said.err.splitlines()
    assert error.startswith("error: ")
    assert found in error
    assert nearest in help_


def test_fetch_of_an_unknown_dataset_names_the_nearest(tmp_path: Path) -> None:
    said = inside("data", "fetch", "ml-2m", folder=tmp_path)
    assert (said.code, said.out) == (2, "")
    assert "no dataset is called 'ml-2m'" in said.err
    assert "ml-20m" in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_whose_terms_must_be_agreed_to_is_not_fetched(tmp_path: Path) -> None:
    said = recbias("data", "fetch", "yelp", "--data", tmp_path / "here", folder=tmp_path)
    assert (said.code, said.out) == (2, "")
    terms, cite, error, help_ = said.err.splitlines()
    assert "academic use" in terms
    assert cite.startswith("Please cite: ")
    assert error.startswith("error: ")
    assert "https://www.yelp.com/dataset" in error
    assert "yelp_academic_dataset_review.json" in help_
    assert str(tmp_path / "here" / "yelp") in help_
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "ml-100k"
    folder.mkdir(parents=True)
    for name in ("u.data", "u.item", "u.user"):
        (folder / name).write_text("")
    said = inside("data", "fetch", "ML-100K", folder=tmp_path)
    assert said.code == 0, said.err
    assert said.out == f"{Path('data') / 'ml-100k'}\n"
    assert "GroupLens" in said.err
    assert sorted(each.name for each in folder.iterdir()) == ["u.data", "u.item", "u.user"]


def test_the_data_folder_may_be_named_by_the_environment(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    said = recbias(
        *("data", "describe", "ml-1m"),
        folder=tmp_path,
        env={"RECBIAS_DATA": str(tmp_path / "elsewhere")},
    )
    assert said.code == 2
    assert "elsewhere" in said.err


@pytest.mark.parametrize("name", ["demo", "Tables"])
def test_what_nobody_publishes_needs_no_fetching(name: str, tmp_path: Path) -> None:
    said = recbias("data", "fetch", name, folder=tmp_path)
    assert said.code == 0, said.err
    assert "needs no fetching" in said.err
