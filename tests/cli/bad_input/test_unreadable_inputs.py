"""Any input that cannot be read is a user error that names its path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.commands import invoke_recbias

HEAD = """\
name: x
split: {name: random, test: 0.2}
k: 5
metrics: [nDCG]
"""
DEMO = HEAD + "dataset: {name: demo, n_users: 80, n_items: 60}\n"
TABLES = HEAD + "dataset: {name: tables, interactions: in.csv}\nmodels: [MostPop]\n"

VECTORS = (
    "{name: vectors, users: users.npy, user_ids: users.txt, items: items.npy, item_ids: items.txt}"
)

SPECS = {
    "in.csv": TABLES,
    "items.csv": TABLES.replace("in.csv", "in.csv, items: items.csv"),
    "lists.csv": DEMO + "models: [{name: lists, path: lists.csv}]\n",
    "mine.py": DEMO + "models: ['./mine.py:Mine']\n",
    "users.npy": DEMO + f"models: [{VECTORS}]\n",
    "users.txt": DEMO + f"models: [{VECTORS}]\n",
    "data/ml-100k/u.data": HEAD + "dataset: ml-100k\nmodels: [MostPop]\n",
    "direction.npy": DEMO.replace(
        "[nDCG]",
        """
  - name: R-RIPA
    direction: direction.npy
    groups: {of: users, attribute: gender, a: F, b: M}
    targets: {of: items, attribute: genres, e: Romance, p: Action}""",
    )
    + "models: [PureSVD]\n",
}


def create_folder(path: Path) -> None:
    path.mkdir()


def create_pipe(path: Path) -> None:
    os.mkfifo(path)


def create_link_to_itself(path: Path) -> None:
    path.symlink_to(path)


REPLACEMENTS = [create_folder, create_pipe, create_link_to_itself]


def write_inputs(folder: Path, spec: str) -> None:
    (folder / "x.yaml").write_text(spec, encoding="utf-8")
    rows = "".join(f"u{row % 9},i{row % 7}\n" for row in range(63))
    (folder / "in.csv").write_text(f"user_id,item_id\n{rows}", encoding="utf-8")
    (folder / "items.csv").write_text("item_id,kind\ni1,a\n", encoding="utf-8")
    (folder / "lists.csv").write_text("user_id,item_id,rank\n1,1,1\n", encoding="utf-8")
    (folder / "mine.py").write_text("class Mine: pass\n", encoding="utf-8")
    for name in ("users", "items", "direction"):
        np.save(folder / f"{name}.npy", np.ones((2, 2)))
    for name in ("users", "items"):
        (folder / f"{name}.txt").write_text("1\n2\n", encoding="utf-8")
    (folder / "data" / "ml-100k").mkdir(parents=True)
    for name in ("u.data", "u.item", "u.user", "u.genre"):
        (folder / "data" / "ml-100k" / name).write_text("1\t1\t1\t1\n", encoding="utf-8")


@pytest.mark.parametrize("replace", REPLACEMENTS)
@pytest.mark.parametrize("name", SPECS)
def test_replaced_input_is_a_user_error(
    name: str, replace: Callable[[Path], None], tmp_path: Path
) -> None:
    write_inputs(tmp_path, SPECS[name])
    (tmp_path / name).unlink()
    replace(tmp_path / name)
    result = invoke_recbias("plan", "x.yaml", "--data", "data", folder=tmp_path)
    assert result.code == 2, result.err
    assert Path(name).name in result.err
    assert "help: " in result.err


@pytest.mark.parametrize("replace", REPLACEMENTS)
@pytest.mark.parametrize("name", ["manifest.json", "metrics.csv", "significance.csv"])
def test_replaced_file_of_a_run_is_a_user_error(
    name: str, replace: Callable[[Path], None], tmp_path: Path
) -> None:
    write_inputs(tmp_path, TABLES)
    assert invoke_recbias("run", "x.yaml", folder=tmp_path).code == 0
    path = (tmp_path / "results" / "x" / "latest").resolve() / name
    path.unlink(missing_ok=True)
    replace(path)
    result = invoke_recbias("report", "x", folder=tmp_path)
    assert result.code == 2, result.err
    assert name in result.err
