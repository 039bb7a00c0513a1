"""The exchange of files with a real process that is well, ill, slow, or lies."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from recbias.core.context import stage_context
from recbias.core.errors import BrokenContract, PluginError
from recbias.models.recbole import Call, Interpreter
from support.models.fake_recbole import write_fake

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
        (
            "import numpy as np; np.save('x', np.zeros(2)); os.rename('x.npy', 'state.npz')",
            "state",
        ),
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
