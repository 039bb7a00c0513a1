"""The commands with the core packages only: every package of an extra is absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recbias.core.packages import EXTRAS, find_extras, list_libraries
from recbias.registry import REGISTRIES
from support.commands import CommandResult

ABSENT = sorted(
    {package.replace("-", "_") for packages in EXTRAS.values() for package in packages}
)
HIDE = f"""
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
from recbias.__main__ import main
main()
"""


def run_core(*words: object, folder: Path) -> CommandResult:
    """Run ``recbias`` in a process in which no package of an extra can be imported."""
    command = [sys.executable, "-c", HIDE, *map(str, words)]
    process = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ}
    )
    return CommandResult(process.returncode, process.stdout, process.stderr)


def test_the_specs_for_a_start_need_the_core_only(tmp_path: Path) -> None:
    for spec in ("quickstart", "audit", "prompts", "vectors", "demo-bias"):
        finished = run_core("run", spec, "--quiet", folder=tmp_path)
        assert finished.code == 0, finished.err
        assert finished.out.count("report.html") == 1


@pytest.mark.parametrize("kind", ["models", "detectors"])
def test_lists_name_the_extra_of_each_plugin(kind: str, tmp_path: Path) -> None:
    listed = run_core("list", kind, folder=tmp_path)
    assert listed.code == 0
    lines = {line.split()[0]: line for line in listed.out.splitlines()[2:]}
    for name in REGISTRIES[kind].table:
        extras = find_extras(list_libraries(REGISTRIES[kind].load(name)))
        assert not extras or lines[name].endswith(f" {','.join(extras)}")
        assert "not installed" not in lines[name]


def test_a_plugin_is_shown_with_its_extra(tmp_path: Path) -> None:
    output = run_core("show", "lenskit/ItemKNN", folder=tmp_path)
    assert output.code == 0
    assert "Extra: libraries; in the clone: pip install '.[libraries]'" in output.out


SPEC = """\
name: everything
dataset: {name: demo, n_users: 80, n_items: 60}
split: {name: random, test: 0.2, validation: 0.2}
models:
  - MostPop
  - MultiVAE
  - BPR-MF
  - implicit/ALS
  - lenskit/ItemKNN
  - {name: ItemKNN, tune: {metric: nDCG, trials: 2, space: {neighbors: {int: [1, 5]}}}}
  - {name: responses, path: responses.jsonl}
metrics: [nDCG, BLEU, ROUGE-L]
"""


def test_every_missing_extra_is_reported_once_with_its_models_and_first_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "responses.jsonl").touch()
    for command in ("plan", "run"):
        refused = run_core(command, "spec.yaml", folder=tmp_path)
        assert refused.code == 2
        errors = [line for line in refused.err.splitlines() if line.startswith("error: ")]
        helps = [line for line in refused.err.splitlines() if line.startswith("help: ")]
        assert [error.split(":")[2] for error in errors] == ["6", "8", "12", "10", "11"]
        extras = ["torch", "libraries", "text", "tune"]
        assert helps[:4] == [f"help: in the clone: pip install '.[{extra}]'" for extra in extras]
        assert "MultiVAE and BPR-MF need the package 'torch'" in errors[0]
        assert "implicit/ALS and lenskit/ItemKNN need the packages" in errors[1]
        assert "BLEU and ROUGE-L need" in errors[2]
        assert "a search needs the package 'optuna'" in errors[3]
        assert "responses.jsonl" in errors[4]  # it is empty
        assert not (tmp_path / "results").exists()


def test_ray_is_refused_with_its_extra(tmp_path: Path) -> None:
    refused = run_core("run", "quickstart", "--executor", "ray", folder=tmp_path)
    assert refused.code == 2
    assert "help: in the clone: pip install '.[ray]'" in refused.err
