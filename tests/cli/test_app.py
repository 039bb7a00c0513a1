from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recbias import __version__
from support.commands import recbias, small_spec

HEAVY = ("torch", "transformers", "implicit", "lenskit", "sklearn")


def test_help_names_every_command(tmp_path: Path) -> None:
    said = recbias("--help", folder=tmp_path)
    assert said.code == 0
    for command in ("run", "plan", "list", "show", "data", "report", "compare", "schema", "clean"):
        assert command in said.out


def test_the_version_is_printed(tmp_path: Path) -> None:
    assert recbias("--version", folder=tmp_path).out.strip() == __version__


def test_an_unknown_command_is_the_users_fault(tmp_path: Path) -> None:
    assert recbias("rum", folder=tmp_path).code == 2


def modules_after(words: list[str], folder: Path) -> set[str]:
    script = (
        "import sys\n"
        f"sys.argv = ['recbias', *{words!r}]\n"
        "from recbias.cli.app import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('MODULES', *sorted(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("MODULES")[2].split())


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    loaded = modules_after(["--help"], tmp_path)
    assert not loaded & {*HEAVY, "numpy", "pandas", "scipy", "pydantic", "pyarrow"}


def test_plan_imports_no_learning_library(tmp_path: Path) -> None:
    spec = small_spec(tmp_path)
    with_library = spec.read_text().replace("MostPop", "implicit/ALS, lenskit/ItemKNN")
    spec.write_text(with_library)
    loaded = modules_after(["plan", str(spec)], tmp_path)
    assert "recbias.runner.planning.plan" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize("words", [["-m", "recbias", "--help"]])
def test_it_runs_as_a_module(words: list[str], tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0
