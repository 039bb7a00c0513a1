"""Plug-ins that end, change or fill the process in which they run."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recbias.core.machine.process_state import protect_process
from recbias.runner.boundary import attempt
from support.commands import SMALL, run_recbias, write_small_spec

MODEL = """\
from recbias.plugin import Queries, RankedLists, TrainingData, dataclass, np, rank_by_scores
import os, sys

class Unreadable(Exception):
    def __str__(self):
        raise ValueError

"""

CLASS = """
@dataclass(frozen=True, kw_only=True)
class {name}:
    '''Does: {code}.'''

    provides, needs, libraries = frozenset({{"lists"}}), frozenset({{"train"}}), ()

    def fit(self, data: TrainingData, rng: np.random.Generator) -> "Fitted":
        {code}
        return Fitted(np.bincount(data.train.items, minlength=data.train.n_items) * 1.0)

    def restore(self, state):
        return Fitted(state["scores"])
"""

FITTED = """
@dataclass(frozen=True, eq=False)
class Fitted:
    scores: np.ndarray

    def state(self):
        return {"scores": self.scores}

    def recommend(self, queries: Queries, k: int, data: TrainingData) -> RankedLists:
        tile = lambda users: np.tile(self.scores, (len(users), 1))
        return rank_by_scores(tile, queries, k, data)
"""

FAILS = {
    "Exits": "os._exit(0)",
    "ExitsHere": "sys.exit(0)",
    "Uncommon": "raise BaseException('mine')",
    "Unread": "raise Unreadable",
    "Unencodable": "raise ValueError(chr(0xD800))",
    "Long": "raise ValueError('x' * 10**6)",
}
"""Models that fail, with what they do."""

GOES_ON = {
    "Elsewhere": "os.chdir('/')",
    "Masked": "os.umask(0o777)",
    "Closes": "sys.stdout.close(); sys.stderr.close()",
    "ClosesBoth": "os.close(1); os.close(2)",
    "Loses": "sys.stdout = sys.stderr = None",
    "Prints": "print('printed')",
}
"""Models that work, although they change the process."""


@pytest.mark.parametrize("workers", [1, 2])
def test_no_model_ends_or_moves_the_run_of_the_others(tmp_path: Path, workers: int) -> None:
    classes = [CLASS.format(name=name, code=code) for name, code in {**FAILS, **GOES_ON}.items()]
    (tmp_path / "own.py").write_text(MODEL + "".join(classes) + FITTED)
    models = ["MostPop", *(f"./own.py:{name}" for name in (*FAILS, *GOES_ON)), "Random"]
    text = (
        "name: own\nseed: 1\ndataset: {name: demo, n_users: 60, n_items: 40}\n"
        f"split: {{name: random, test: 0.2}}\nk: 5\nmodels: {json.dumps(models)}\nmetrics: [HR]\n"
    )
    spec = write_small_spec(tmp_path, text)
    result = run_recbias("run", spec, "--json", "--workers", workers, folder=tmp_path)
    assert result.code == 1
    assert "Traceback" not in result.err
    assert "bug in recbias" not in result.err
    document = json.loads(result.out)
    with (tmp_path / document["folder"] / "metrics.csv").open() as rows:
        models_with_values = {row["model"] for row in csv.DictReader(rows) if row["value"]}
    assert models_with_values == {"MostPop", "Random", *GOES_ON}
    failures = {failure["model"]: failure["message"] for failure in document["failures"]}
    assert failures.keys() == FAILS.keys()
    assert failures["Exits"].startswith("SystemExit: 0 (own.py:")
    assert failures["Uncommon"].startswith("RuntimeError: BaseException: mine (own.py:")
    assert failures["Unread"].startswith("RuntimeError: Unreadable, without a message (own.py:")
    assert "printed" in result.err
    runs = [path for path in (tmp_path / "results" / "own").iterdir() if not path.is_symlink()]
    assert len(runs) == 1
    assert all(path.stat().st_mode & 0o400 for path in runs[0].rglob("*"))
    assert (runs[0] / "manifest.json").stat().st_size < 200_000


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_never_gets_the_number_of_a_closed_stream(tmp_path: Path, workers: int) -> None:
    opens = "open('number', 'w').write(str(os.open('opened', os.O_WRONLY | os.O_CREAT)))"
    (tmp_path / "own.py").write_text(MODEL + CLASS.format(name="Opens", code=opens) + FITTED)
    text = SMALL.replace("Random, MostPop, ItemKNN", "MostPop, ./own.py:Opens")
    spec = write_small_spec(tmp_path, text)
    command = f"{sys.executable} -m recbias run {spec} --workers {workers} <&- >&- 2>&-"
    assert subprocess.run(command, shell=True, cwd=tmp_path).returncode == 0
    assert int((tmp_path / "number").read_text()) > 2


def test_an_exit_in_a_child_process_is_none_of_the_stage() -> None:
    def fork() -> int:
        child = os.fork()
        if child == 0:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert attempt(fork) == (7, None)


def test_the_process_is_given_back_after_an_error(tmp_path: Path) -> None:
    def change() -> None:
        os.chdir(tmp_path)
        os.umask(0o777)
        sys.stdout = None
        raise OSError("mine")

    before = (Path.cwd(), sys.stdout, sys.stderr, os._exit, os.umask(0o022))
    os.umask(before[-1])
    with pytest.raises(OSError, match="mine"), protect_process():
        change()
    after = (Path.cwd(), sys.stdout, sys.stderr, os._exit, os.umask(before[-1]))
    assert after == before
