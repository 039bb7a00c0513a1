from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.commands import write_small_spec

HEAVY = ("torch", "transformers", "implicit", "lenskit", "sklearn")


def list_imported_modules(arguments: list[str], folder: Path) -> set[str]:
    script = (
        "import sys\n"
        f"sys.argv = ['recbias', *{arguments!r}]\n"
        "from recbias.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('MODULES', *sorted(sys.modules))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(result.stdout.rpartition("MODULES")[2].split())


def test_help_imports_no_heavy_library(tmp_path: Path) -> None:
    loaded = list_imported_modules(["--help"], tmp_path)
    assert not loaded & {*HEAVY, "numpy", "pandas", "scipy", "pydantic", "pyarrow"}


def test_plan_imports_no_learning_library(tmp_path: Path) -> None:
    spec = write_small_spec(tmp_path)
    models = "implicit/ALS, lenskit/ItemKNN"
    spec.write_text(spec.read_text().replace("MostPop", models))
    loaded = list_imported_modules(["plan", str(spec)], tmp_path)
    assert "recbias.runner.plan" in loaded
    assert not loaded & set(HEAVY)


def test_package_runs_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "recbias", "--help"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True)
    assert result.returncode == 0
