"""What people really hand in: odd identifiers, holes in lists, disks that refuse."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from support.commands import SMALL, recbias, small_spec

ODD_USERS = ["a,b", 'say "hi"', "new\nline", "🎬", "שלום", "007", "7", " x "]
ODD_ITEMS = ["i,1", 'i"2"', "i\n3", "🍕", "01", "1", "<b>&amp;</b>", "$_%"]


def write_rows(path: Path, head: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(head)
        writer.writerows(rows)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Train, test, queries and lists with identifiers of every kind."""
    head = ["user_id", "item_id"]
    train = [[user, ODD_ITEMS[n % 4]] for n, user in enumerate(ODD_USERS)]
    test = [[user, ODD_ITEMS[4 + n % 4]] for n, user in enumerate(ODD_USERS[:-1])]
    write_rows(tmp_path / "train.csv", head, train)
    write_rows(tmp_path / "test.csv", head, test)
    write_rows(tmp_path / "queries.csv", ["query_id", "age"], [[u, "9"] for u in ODD_USERS])
    lists = [[u, ODD_ITEMS[4 + n % 4], "1"] for n, u in enumerate(ODD_USERS[:-2])]
    write_rows(tmp_path / "mine.csv", ["query_id", "item_id", "rank"], lists)
    (tmp_path / "spec.yaml").write_text(
        "name: odd\n"
        "dataset: tables\n"
        "split: {name: given, train: train.csv, test: test.csv}\n"
        "queries: {name: table, path: queries.csv}\n"
        "k: 3\n"
        "models:\n"
        "  - {name: lists, label: '<script>alert(1)</script>|&_%$', path: mine.csv}\n"
        "  - MostPop\n"
        "metrics: [nDCG, HR, log_popularity_difference(smoothing=1)]\n"
        "tests: [paired_t]\n",
        encoding="utf-8",
    )
    return tmp_path


def test_identifiers_come_out_as_they_were_written(odd: Path) -> None:
    said = recbias("run", "spec.yaml", folder=odd)
    assert said.code == 0, said.err
    run = odd / "results" / "odd" / "latest"
    lists = pd.read_parquet(run / "lists.parquet")
    mine = lists[lists["model"] != "MostPop"]
    assert mine["query_id"].tolist() == ODD_USERS[:-2]
    assert mine["item_id"].tolist() == [ODD_ITEMS[4 + n % 4] for n in range(6)]
    units = pd.read_parquet(run / "per_unit.parquet")
    assert set(units["unit_id"]) == set(ODD_USERS)


def test_holes_are_counted_and_undefined_is_never_zero(odd: Path) -> None:
    said = recbias("run", "spec.yaml", folder=odd)
    assert said.code == 0, said.err
    run = odd / "results" / "odd" / "latest"
    table = pd.read_csv(run / "metrics.csv")
    mine = table[(table["model"] != "MostPop") & (table["metric"] == "nDCG")].iloc[0]
    # 8 asked; the last has no test item: undefined. "7" has test items and no list: 0. 6 are hit
    assert (mine["n"], mine["undefined"]) == (7, 1)
    assert mine["value"] == pytest.approx(6 / 7)
    units = pd.read_parquet(run / "per_unit.parquet")
    last = units[(units["unit_id"] == " x ") & (units["metric"] == "nDCG")]
    assert last["value"].isna().all()
    warnings = "\n".join(json.loads((run / "manifest.json").read_text())["warnings"])
    assert "2" in warnings
    assert "list" in warnings


def test_labels_of_the_data_are_escaped_in_every_report(odd: Path) -> None:
    said = recbias("run", "spec.yaml", folder=odd)
    assert said.code == 0, said.err
    run = odd / "results" / "odd" / "latest"
    assert "<script>alert(1)" not in (run / "report.html").read_text(encoding="utf-8")
    for figure in (run / "figures").glob("*.svg"):
        assert "<script>alert(1)" not in figure.read_text(encoding="utf-8")
    for table in (run / "tables").glob("*.tex"):
        text = table.read_text(encoding="utf-8")
        assert "alert(1)" not in text or r"\_\%\$" in text


@pytest.mark.parametrize(
    ("name", "content", "said_of_it"),
    [
        ("mine.csv", "query_id,item_id,rank\n🎬,🍕,1\n🎬,🍕,2\n", "mine.csv:3"),
        ("mine.csv", "query_id,item_id,score\n🎬,🍕,nan\n", "mine.csv:2"),
        ("mine.csv", "query_id,item_id,rank\n🎬,🍕,first\n", "mine.csv:2"),
        ("mine.csv", "query_id,item,rank\n🎬,🍕,1\n", "item_id"),
        ("mine.csv", "", "mine.csv"),
        ("train.csv", "user_id,item_id\na,1,2\n", "train.csv:2"),
        ("train.csv", "user_id,item_id\n", "train"),
        ("queries.csv", "query_id,age\na,1\na,2\n", "queries.csv:3"),
    ],
)
def test_a_file_at_fault_is_named_with_its_line(
    odd: Path, name: str, content: str, said_of_it: str
) -> None:
    (odd / name).write_text(content, encoding="utf-8")
    said = recbias("run", "spec.yaml", "--set", "models.1=Random", folder=odd)
    assert said.code == 2, said.err
    assert said_of_it in said.err
    assert "Traceback" not in said.err


def test_a_test_pair_that_is_in_training_is_leakage(odd: Path) -> None:
    (odd / "test.csv").write_text((odd / "train.csv").read_text(encoding="utf-8"), "utf-8")
    said = recbias("run", "spec.yaml", folder=odd)
    assert said.code == 2
    assert "8 (user, item) pairs stand in" in said.err
    assert not list(odd.glob("results/odd/*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 192 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_one_line_and_leaves_no_run(small_disk: Path, tmp_path: Path) -> None:
    spec = small_spec(tmp_path, SMALL.replace("n_users: 80, n_items: 60", "n_users: 3000"))
    said = recbias("run", spec, "--out", small_disk / "results", folder=tmp_path)
    assert said.code == 2, said.err
    assert "the disk is full" in said.err
    assert "help: free some space" in said.err
    assert "Traceback" not in said.err
    assert not list((small_disk / "results" / "small").glob("*"))


def test_a_read_only_disk_is_one_line(small_disk: Path, tmp_path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    said = recbias("run", small_spec(tmp_path), "--out", small_disk / "results", folder=tmp_path)
    assert said.code == 2, said.err
    assert "it cannot be written" in said.err
    assert "Traceback" not in said.err
