from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recbias
from support.specs import make_small_spec

NOTEBOOK = """\
import builtins
import json
import re
import sys

class ZMQInteractiveShell:
    pass

builtins.get_ipython = ZMQInteractiveShell
import recbias

recbias.run(json.loads(sys.argv[1]), out=sys.argv[2], progress=json.loads(sys.argv[3]))
"""
"""A kernel as ``rich`` and recbias see it: IPython adds ``get_ipython`` to the builtins."""

WIDGETS = """\
import sys

class Output:
    def __enter__(self):
        sys.__stdout__.write("<widget>")
    def __exit__(self, *error):
        sys.__stdout__.write("</widget>")
    def clear_output(self, wait):
        pass
    def close(self):
        pass
"""

DISPLAY = """\
import sys

def display(shown):
    if hasattr(shown, "_repr_mimebundle_"):
        sys.__stdout__.write(shown._repr_mimebundle_([], [])["text/plain"])
"""
"""What ``rich`` uses of IPython and ipywidgets, which need a kernel: both write what they get."""


def run_notebook(folder: Path, progress: object) -> subprocess.CompletedProcess[str]:
    """Run the small spec in a process that looks like a kernel, with the modules in a folder."""
    script = folder / "notebook.py"
    script.write_text(NOTEBOOK)
    arguments = [json.dumps(make_small_spec()), str(folder / "out"), json.dumps(progress)]
    command = [sys.executable, str(script), *arguments]  # modules beside a script are found first
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


def test_a_notebook_without_widgets_shows_one_line_per_stage(tmp_path: Path) -> None:
    output = run_notebook(tmp_path, None)
    lines = output.stdout.splitlines()
    assert [re.sub(r"^\[\d+/\d+\] | \[.*", "", line) for line in lines] == [
        "load demo",
        "split demo",
        *("fit MostPop", "recommend MostPop"),
        *("fit ItemKNN", "recommend ItemKNN"),
    ]
    assert output.stderr == ""  # a notebook shows it in red


def test_a_notebook_can_be_silent(tmp_path: Path) -> None:
    output = run_notebook(tmp_path, progress=False)
    assert (output.stdout, output.stderr) == ("", "")


def test_a_notebook_with_widgets_has_a_live_display(tmp_path: Path) -> None:
    (tmp_path / "ipywidgets.py").write_text(WIDGETS)
    (tmp_path / "IPython").mkdir()
    (tmp_path / "IPython" / "__init__.py").write_text("")
    (tmp_path / "IPython" / "display.py").write_text(DISPLAY)
    output = run_notebook(tmp_path, None)
    assert "<widget>" in output.stdout
    assert "fit ItemKNN [demo, seed 42]: " in output.stdout
    assert output.stderr == ""


@pytest.mark.parametrize(("progress", "is_shown"), [({}, False), ({"progress": True}, True)])
def test_a_script_shows_progress_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], progress: dict[str, Any], is_shown: bool
) -> None:
    recbias.run(make_small_spec(), out=tmp_path, **progress)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert ("fit ItemKNN [demo, seed 42]: " in captured.err) == is_shown
    assert bool(captured.err) == is_shown
