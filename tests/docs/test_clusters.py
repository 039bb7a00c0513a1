"""The recipes of the guide for clusters: parsed, and run where no cluster is needed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from recbias.cli.main import load_command
from recbias.runs.tables import list_runs

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "clusters.md").read_text("utf-8")
TITLED = dict(re.findall(r'```\w+ title="(.+?)"\n(.*?)```', PAGE, re.DOTALL))
SHELL = [*re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL), *map(TITLED.get, sorted(TITLED))]
SCRIPTS = {name: text for name, text in TITLED.items() if name.endswith(".sh")}
ARGUMENTS = [
    match[1]
    for block in SHELL
    for match in re.finditer(
        r"^(?:\w+=\w+ |nohup )*recbias (.*?)(?:\s+>.*|\s+#.*)?$", block or "", re.MULTILINE
    )
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of the page, and a command ``recbias``."""
    for name, text in TITLED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "recbias"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m recbias "$@"\n')
    command.chmod(0o755)
    return tmp_path


def run_script(folder: Path, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    text = (folder / name).read_text("utf-8").replace("--device cuda", "--device cpu")
    return subprocess.run(
        ["bash", "-eu", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": path, "SLURM_CPUS_PER_TASK": "1", **variables},
        capture_output=True,
        text=True,
    )


def remove_training(folder: Path) -> None:
    """Remove the model whose loops are compiled, which takes seconds."""
    spec = folder / "study.yaml"
    lines = spec.read_text("utf-8").splitlines(keepends=True)
    spec.write_text("".join(line for line in lines if "BPR-MF" not in line), encoding="utf-8")


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_commands_have_the_options_of_the_command_line(arguments: str) -> None:
    name, *words = shlex.split(arguments.replace("$SLURM_ARRAY_TASK_ID", "1"))
    context = load_command(name).make_context(name, words)
    assert context.params


def test_every_recipe_has_commands() -> None:
    assert {arguments.split()[0] for arguments in ARGUMENTS} == {"plan", "run", "compare"}
    assert len(ARGUMENTS) == 12
    for name, script in SCRIPTS.items():
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        lines = script.splitlines()
        assert lines[0] == "#!/bin/bash", name
        options = [line for line in lines if line.startswith("#SBATCH ")]
        assert all(re.fullmatch(r"#SBATCH --[a-z-]+(=\S+)?", line) for line in options), name


def test_the_devices_of_the_page_are_those_of_the_spec(folder: Path) -> None:
    (fragment,) = re.findall(r"```yaml\n(device: .*?)```", PAGE, re.DOTALL)
    assert yaml.safe_load(fragment)["device"] == "cuda"
    remove_training(folder)
    result = run_script(folder, "one.sh")
    assert result.returncode == 0, result.stderr
    assert "[8/11] fit ItemKNN [demo, seed 42]: " in result.stderr


@pytest.mark.slow  # several runs
def test_an_array_computes_what_the_last_job_collects(folder: Path) -> None:
    remove_training(folder)
    array = range(1, 6)
    text = TITLED["array.sh"]
    assert f"#SBATCH --array={array[0]}-{array[-1]}\n" in text
    for task in (1, 2):
        result = run_script(folder, "array.sh", SLURM_ARRAY_TASK_ID=str(task))
        assert result.returncode == 0, result.stderr
    collect = (folder / "collect.sh").read_text("utf-8")
    assert f"seeds={[*array]}" in collect
    collect = collect.replace(f"seeds={[*array]}", "seeds=[1, 2]").replace("run", "run --verbose")
    (folder / "collect.sh").write_text(collect, encoding="utf-8")
    result = run_script(folder, "collect.sh")
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("[")]
    assert len(lines) == 18
    assert [line for line in lines if not line.endswith(": cached")] == []
    assert len(list_runs(folder / "results")) == 3


def test_a_killed_run_resumes_by_the_same_command(folder: Path) -> None:
    remove_training(folder)
    command = [sys.executable, "-m", "recbias", "run", "study.yaml"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "recommend ItemKNN" in line)
        process.kill()
    assert line.startswith("[9/11] ")
    again = subprocess.run([*command, "-v"], cwd=folder, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    # the training of a model is not needed: its answers are stored
    assert "[4/9] recommend MostPop [demo, seed 42]: cached" in again.stderr
