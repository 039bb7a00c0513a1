"""The benchmark of whole jobs runs on a small MovieLens with the tool that the tests install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "whole_jobs.py"
N_USERS, N_FILMS, N_TASTES = 60, 48, 3


def write_movielens(folder: Path) -> None:
    """Write a MovieLens 1M whose users rate most films of their taste, and few others."""
    rng = np.random.default_rng(7)
    folder.mkdir()
    lines = []
    for user in range(N_USERS):
        for film in range(N_FILMS):
            likes = film % N_TASTES == user % N_TASTES
            if rng.random() < (0.95 if likes else 0.4):
                rating = 5 - rng.integers(0, 2 if likes else 3)
                lines.append(f"{user + 1}::{film + 1}::{rating}")
    ratings = "".join(f"{line}::{number}\n" for number, line in enumerate(lines))
    films = "".join(f"{film}::Film {film} (1999)::Drama\n" for film in range(1, N_FILMS + 1))
    users = "".join(f"{user}::F::25::1::12345\n" for user in range(1, N_USERS + 1))
    for name, text in (("ratings", ratings), ("movies", films), ("users", users)):
        (folder / f"{name}.dat").write_text(text, encoding="latin-1")


@pytest.mark.slow
def test_both_tools_have_a_row_with_the_values_of_their_lists(tmp_path: Path) -> None:
    pytest.importorskip("implicit")
    write_movielens(tmp_path / "ml-1m")
    command = [sys.executable, str(BENCHMARK), "--turns", "1", "--jobs", "ItemKNN"]
    command += ["--tools", "implicit,elliot"]
    environment = {**os.environ, "RECBIAS_DATA": str(tmp_path)}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "no --python names them: elliot\n" in result.stdout
    rows = [line[2:-2].split(" | ") for line in result.stdout.splitlines() if line[:2] == "| "]
    assert [row[:2] for row in rows[1:]] == [["ItemKNN", "recbias"], ["ItemKNN", "implicit"]]
    values = [[float(cell) for cell in row[2:]] for row in rows[1:]]
    for wall, cpu, peak, ndcg, recall, common, _ in values:
        assert wall > 0
        assert cpu > 0.1  # Python alone takes less
        assert 30 < peak < 4000
        assert ndcg == common  # implicit's own value is that of numpy in its process
        assert 0.5 < ndcg < 1  # 12 films of a taste, of which most are training rows
        assert 0.5 < recall <= 1
    assert values[0][-1] == 1.0
    # the printed ratio is rounded, and so are its parts
    assert abs(values[1][-1] - values[1][1] / values[0][1]) <= 0.06
