from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias import api
from recbias.core.context import collect_facts, stage_context
from recbias.core.dataset import TrainingData
from recbias.core.errors import (
    BrokenContract,
    Contradiction,
    MissingExtra,
    MissingFile,
    OutOfRange,
    PluginError,
)
from recbias.core.packages import is_installed
from recbias.models.recbole import (
    SEED,
    VARIABLE,
    Call,
    Interpreter,
    RecBole,
    find_interpreter,
    order_rows,
    require_interpreter,
)
from support.commands import invoke_recbias
from support.models.fake_recbole import write_fake
from support.models.sequence_worlds import set_times
from support.worlds.query_sets import make_queries
from support.worlds.small_worlds import make_interactions

PAIRS = [(0, 3), (0, 1), (1, 3), (1, 1), (2, 3), (2, 4)]
"""Item 3 has three users, item 1 two, item 4 one; items 0, 2 and 5 none."""


@pytest.fixture
def data() -> TrainingData:
    return TrainingData(make_interactions(PAIRS, n_users=4, n_items=6))


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = write_fake(tmp_path / "python")
    monkeypatch.setenv(VARIABLE, str(program))
    return program


@pytest.mark.usefixtures("fake", "stage_warnings")
def test_lists_are_those_of_the_process(data: TrainingData) -> None:
    with collect_facts() as facts:
        fitted = RecBole(model="Pop", epochs=1).fit(data, np.random.default_rng(0))
    assert facts == {"recbole": "9.9"}
    assert fitted.state()[SEED] == np.random.default_rng(0).integers(2**31)
    queries = make_queries(["u2", "u0", "u3", "u2"], [2, 0, 3, 2])
    lists = RecBole(model="Pop").restore(fitted.state()).recommend(queries, 3, data)
    # user 2 lacks item 1, user 0 lacks item 4, user 3 has no history; items 0, 2, 5 no rows
    assert lists.items.tolist() == [[1, -1, -1], [4, -1, -1], [-1, -1, -1], [1, -1, -1]]
    assert lists.scores[:2, 0].tolist() == [2, 1]


def test_rows_are_in_the_order_of_time_and_ties_in_that_of_the_file() -> None:
    pairs = [(1, 0), (0, 1), (0, 2), (0, 3), (1, 3)]
    rows = set_times(make_interactions(pairs), np.array([5, 9, 1, 9, 2]))
    ordered = {name: array.tolist() for name, array in order_rows(rows).items()}
    # user 0: item 2 at 1, items 1 and 3 at 9 in the order of the file; user 1: 3 at 2, 0 at 5
    assert ordered == {
        "users": [0, 0, 0, 1, 1],
        "items": [2, 1, 3, 3, 0],
        "ranks": [0, 1, 2, 0, 1],
    }


@pytest.mark.parametrize(
    ("settings", "error", "where"),
    [
        ({"model": "BPR()"}, OutOfRange, "model"),
        ({"model": "BPR", "config": {"learner": "exec('x')"}}, OutOfRange, "config"),
        ({"model": "BPR", "config": {"epochs": 3}}, Contradiction, "config"),
        (
            {"model": "BPR", "embedding_size": 8, "config": {"embedding_size": 9}},
            Contradiction,
            "config",
        ),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], error: type, where: str) -> None:
    with pytest.raises(error) as raised:
        RecBole(**settings)
    assert raised.value.where == where  # type: ignore[attr-defined]


SPEC = {
    "name": "fake",
    "dataset": {"name": "demo", "n_users": 40, "n_items": 30},
    "split": {"name": "random", "test": 0.2},
    "models": ["MostPop", {"name": "RecBole/Pop", "epochs": 2}],
    "metrics": ["nDCG"],
}


@pytest.mark.usefixtures("fake")
def test_a_run_equals_our_own_model(tmp_path: Path) -> None:
    run = api.run(SPEC, out=tmp_path / "results")
    scores = dict(zip(run.metrics["model"], run.metrics["value"], strict=True))
    assert scores["recbole/Pop"] == scores["MostPop"] > 0


def test_the_name_after_the_slash_is_the_model(tmp_path: Path) -> None:
    models = "[{name: recbole/BPR}, {name: recbole, model: SASRec}, {name: recbole/X, model: Y}]"
    text = f"name: names\ndataset: demo\nsplit: {{name: random, test: 0.2}}\nmodels: {models}\n"
    (tmp_path / "spec.yaml").write_text(text, encoding="utf-8")
    refused = invoke_recbias("plan", "spec.yaml", folder=tmp_path)
    assert refused.code == 2
    assert "model is given both in the name and as a setting" in refused.err
    path = tmp_path / "spec.yaml"
    path.write_text(text.replace(", {name: recbole/X, model: Y}", ""), encoding="utf-8")
    specs = api.read_experiment(path).models
    assert [(spec.label, spec.plugin.model) for spec in specs] == [
        ("recbole/BPR", "BPR"),
        ("recbole", "SASRec"),
    ]


REQUEST = {"task": "fit", "epochs": 2, "k": 3}
GOOD = """\
import numpy as np
Path("progress.txt").write_text("0.9\\n0.8\\n")
time.sleep(0.3)
np.savez("state.npz", copied=np.load("rows.npz")["users"] + 1)
write("facts.json", {"recbole": "1.2.1"})
"""


def make_call(timeout: float = 60) -> Call:
    rows = {"rows.npz": {"users": np.array([4, 5])}}
    return Call("recbole/BPR", REQUEST, rows, "state.npz", 2, timeout)


def run_fake(
    folder: Path, answer: str, timeout: float = 60
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    program = write_fake(folder / "python", answer)
    with stage_context(scratch_folder=folder / "scratch"):
        return make_call(timeout).run(Interpreter(str(program), ()))


def list_left(folder: Path) -> list[str]:
    return sorted(path.suffix for path in (folder / "scratch").iterdir())


def test_arrays_and_versions_come_back_and_nothing_is_left(tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    with stage_context(on_progress=lambda *step: steps.append(step)):
        arrays, facts = run_fake(tmp_path, GOOD)
    assert {name: array.tolist() for name, array in arrays.items()} == {"copied": [5, 6]}
    assert facts == {"recbole": "1.2.1"}
    assert steps[-1] == ("recbole/BPR epochs", 2, 2)
    assert list_left(tmp_path) == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended with signal 9: RecBole starts"),
        ("sys.exit(7)", "ended with exit code 7: RecBole starts"),
        (
            "print('\\x1b[31mworse\\x07', 'x' * 999); sys.exit(1)",
            "exit code 1: \\x1b[31mworse\\x07 x",
        ),
        ("sys.stdout.buffer.write(bytes(range(256)) * 99); sys.exit(1)", "ended with exit code 1"),
        ("Path('error.json').write_text('{'); sys.exit(1)", "ended with exit code 1"),
        ("Path('error.json').write_text('[3]'); sys.exit(1)", "ended with exit code 1"),
        (
            "write('error.json', {'message': 'KeyError:\\n 3'}); sys.exit(1)",
            "recbole/BPR failed in RecBole: KeyError: 3",
        ),
    ],
)
def test_a_failed_process_is_one_line_and_its_output_is_kept(
    tmp_path: Path, answer: str, message: str
) -> None:
    with pytest.raises(PluginError) as raised:
        run_fake(tmp_path, answer)
    assert message in raised.value.message
    assert len(raised.value.message) < 400
    assert all("\n" not in line and "\x1b" not in line for line in raised.value.lines())
    assert list_left(tmp_path) == [".txt"]
    kept = Path(raised.value.remedy.removeprefix("its output is in "))
    assert kept.read_bytes().startswith(b"RecBole starts\n")


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("", "state.npz"),
        ("Path('state.npz').write_bytes(b'garbage')", "state.npz"),
        ("Path('state.npz').write_bytes(b'PK\\x03\\x04' + bytes(60))", "state.npz"),
        ("import numpy as np; np.savez('state.npz', a=np.array([{}]))", "state.npz"),
        ("import numpy as np; np.savez('state.npz', a=np.zeros(2))", "facts.json"),
    ],
)
def test_a_missing_or_damaged_result_is_refused(tmp_path: Path, answer: str, name: str) -> None:
    with pytest.raises(BrokenContract, match=f"left no {name}"):
        run_fake(tmp_path, answer)


def test_a_slow_process_is_ended_at_its_timeout(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    answer = f"Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(60)"
    start = time.monotonic()
    with pytest.raises(PluginError, match="was ended after 2 s, its timeout") as raised:
        run_fake(tmp_path, answer, timeout=2)
    assert time.monotonic() - start < 20
    assert raised.value.where == "timeout"
    assert not Path(f"/proc/{pid.read_text()}").exists()


def test_the_named_python_is_asked_for_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write_fake(tmp_path / "python")
    monkeypatch.setenv(VARIABLE, str(program))
    interpreter = find_interpreter()
    assert interpreter is not None
    assert interpreter.path == str(program)
    assert [path.name for path in interpreter.metadata] == ["METADATA"]
    assert list(RecBole(model="BPR").model_files()) == list(interpreter.metadata)
    assert RecBole(model="BPR").libraries_now() == ()


@pytest.mark.skipif(is_installed("recbole"), reason="RecBole is installed")
def test_without_a_named_python_the_package_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert find_interpreter() is None
    assert RecBole(model="BPR").libraries_now() == ("recbole",)
    assert RecBole(model="BPR").model_files() == ()
    with pytest.raises(MissingExtra) as raised:
        require_interpreter("recbole/BPR")
    assert raised.value.lines() == [
        "error: recbole/BPR needs the package 'recbole', which is not installed",
        f"help: pip install 'recbias[recbole]', or set {VARIABLE} to a Python that has it",
    ]


@pytest.mark.skipif(is_installed("recbole"), reason="RecBole is installed")
def test_a_python_without_recbole_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, sys.executable)
    with pytest.raises(MissingExtra, match="has no package recbole"):
        find_interpreter()


def test_a_python_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/nowhere/python")
    with pytest.raises(MissingFile, match=f"{VARIABLE}: no program '/nowhere/python'"):
        find_interpreter()
