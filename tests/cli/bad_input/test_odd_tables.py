"""Odd identifiers, incomplete lists and full disks."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from support.commands import SMALL, invoke_recbias, write_small_spec

ODD_USERS = ["a,b", 'say "hi"', "new\nline", "🎬", "שלום", "007", "7", " x "]
ODD_ITEMS = ["i,1", 'i"2"', "i\n3", "🍕", "01", "1", "<b>&amp;</b>", "$_%"]


def write_rows(path: Path, head: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(head)
        writer.writerows(rows)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Write train, test, queries and lists with unusual identifiers; return their folder."""
    head = ["user_id", "item_id"]
    train = [[user, ODD_ITEMS[n % 4]] for n, user in enumerate(ODD_USERS)]
    test = [[user, ODD_ITEMS[4 + n % 4]] for n, user in enumerate(ODD_USERS[:-1])]
    write_rows(tmp_path / "train.csv", head, train)
    write_rows(tmp_path / "test.csv", head, test)
    write_rows(tmp_path / "queries.csv", ["query_id", "age"], [[user, "9"] for user in ODD_USERS])
    lists = [[user, ODD_ITEMS[4 + n % 4], "1"] for n, user in enumerate(ODD_USERS[:-2])]
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


def test_identifiers_are_unchanged_in_the_results(odd: Path) -> None:
    result = invoke_recbias("run", "spec.yaml", folder=odd)
    assert result.code == 0, result.err
    run = odd / "results" / "odd" / "latest"
    lists = pd.read_parquet(run / "lists.parquet")
    rows = lists[lists["model"] != "MostPop"]
    assert rows["query_id"].tolist() == ODD_USERS[:-2]
    assert rows["item_id"].tolist() == [ODD_ITEMS[4 + n % 4] for n in range(6)]
    units = pd.read_parquet(run / "per_unit.parquet")
    assert set(units["unit_id"]) == set(ODD_USERS)


def test_missing_lists_count_as_zero_and_undefined_values_are_excluded(odd: Path) -> None:
    result = invoke_recbias("run", "spec.yaml", folder=odd)
    assert result.code == 0, result.err
    run = odd / "results" / "odd" / "latest"
    table = pd.read_csv(run / "metrics.csv")
    row = table[(table["model"] != "MostPop") & (table["metric"] == "nDCG")].iloc[0]
    # 8 queries; the last has no test item: undefined. "7" has test items, no list: 0. 6 are hit
    assert (row["n"], row["undefined"]) == (7, 1)
    assert row["value"] == pytest.approx(6 / 7)
    units = pd.read_parquet(run / "per_unit.parquet")
    last_user = units[(units["unit_id"] == " x ") & (units["metric"] == "nDCG")]
    assert last_user["value"].isna().all()
    warnings = "\n".join(json.loads((run / "manifest.json").read_text())["warnings"])
    assert "2" in warnings
    assert "list" in warnings


def test_labels_are_escaped_in_every_report(odd: Path) -> None:
    result = invoke_recbias("run", "spec.yaml", folder=odd)
    assert result.code == 0, result.err
    run = odd / "results" / "odd" / "latest"
    assert "<script>alert(1)" not in (run / "report.html").read_text(encoding="utf-8")
    for plot in (run / "figures").glob("*.svg"):
        assert "<script>alert(1)" not in plot.read_text(encoding="utf-8")
    for table in (run / "tables").glob("*.tex"):
        text = table.read_text(encoding="utf-8")
        assert "alert(1)" not in text or r"\_\%\$" in text


def test_test_pair_in_the_training_set_is_leakage(odd: Path) -> None:
    (odd / "test.csv").write_text((odd / "train.csv").read_text(encoding="utf-8"), "utf-8")
    result = invoke_recbias("run", "spec.yaml", folder=odd)
    assert result.code == 2
    assert "8 (user, item) pairs stand in" in result.err
    assert not list(odd.glob("results/odd/*"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 192 KiB; yield its folder."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_is_a_user_error_and_leaves_no_run(small_disk: Path, tmp_path: Path) -> None:
    spec = write_small_spec(tmp_path, SMALL.replace("n_users: 80, n_items: 60", "n_users: 3000"))
    result = invoke_recbias("run", spec, "--out", small_disk / "results", folder=tmp_path)
    assert result.code == 2, result.err
    assert f"error: {small_disk}/results/store: the disk is full" in result.err  # not the spec
    assert "help: free some space" in result.err
    assert "Traceback" not in result.err
    assert not list((small_disk / "results" / "small").glob("*"))


def test_read_only_disk_is_a_user_error(small_disk: Path, tmp_path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    result = invoke_recbias(
        "run", write_small_spec(tmp_path), "--out", small_disk / "results", folder=tmp_path
    )
    assert result.code == 2, result.err
    assert "it cannot be written" in result.err
    assert "Traceback" not in result.err
