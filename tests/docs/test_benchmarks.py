"""The recipes of the guide for clusters: parsed, and run where no cluster is needed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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
    for name, script in SCRIPTS.items():
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        lines = script.splitlines()
        assert lines[0] == "#!/bin/bash", name
        options = [line for line in lines if line.startswith("#SBATCH ")]
        assert all(re.fullmatch(r"#SBATCH --[a-z-]+(=\S+)?", line) for line in options), name


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


BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


@pytest.mark.slow  # a third of a minute of CPU
def test_the_rehearsal_writes_a_row_for_each_way() -> None:
    command = [sys.executable, str(BENCHMARK), "--rehearse"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rows = [line.split(" | ") for line in result.stdout.splitlines() if line.startswith("| ")]
    ways: dict[str, list[str]] = {}
    for part, way, rate, ratio, _ in rows[1:]:
        ways.setdefault(part.removeprefix("| "), []).append(way)
        assert float(rate.replace(",", "")) > 0
        assert float(ratio) > 0
    assert ways == {
        "encoder, fine-tuning": ["ours", "plain loop", "Trainer"],
        "encoder, reading": ["ours", "plain loop", "Trainer"],
        "causal model, reading": ["ours", "plain loop"],
        "causal model, training": ["ours", "Trainer"],
        "lists, 300 users x 500 items (users a second)": ["ours", "torch.topk"],
        **{
            f"{part} (users a second)": ["ours", "ours, by arrays on the CPU"]
            for part in ("EASE", "lists of EASE", "PureSVD", "ItemKNN", "UserKNN")
        },
        "NeuMF, training (samples a second)": ["ours, a CUDA graph", "ours, kernel by kernel"],
    }


BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run_benchmark(name: str, *arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / name), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return result.stdout + result.stderr


@pytest.mark.slow  # a process for each stage
def test_growth_has_a_row_for_each_stage_and_its_exponent(tmp_path: Path) -> None:
    sizes = ("--sizes", "50000,100000", "--models", "MostPop", "--folder", str(tmp_path))
    lines = run_benchmark("growth.py", *sizes).splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert rows[0] == ["stage", "50,000", "100,000", "exponent"]
    names = [row[0].rstrip(" |") for row in rows[1:]]
    assert names[:4] == ["load", "load and 10-core", "split", "queries"]
    assert names[4:] == ["fit MostPop", "lists MostPop", "measures MostPop", "tests and tables"]
    for row in rows[1:]:
        assert all(re.fullmatch(r"[\d,.]+ s, [\d,]+ MB", cell) for cell in row[1:3]), row


@pytest.mark.slow  # five models
def test_goodreads_is_computed_whole() -> None:
    text = run_benchmark("goodreads.py", "--share", "0.0005")
    for model in ("Random", "MostPop", "PureSVD", "implicit/ALS", "BPR-MF"):
        for metric in ("nDCG", "HR", "ItemCoverage", "log_popularity_difference"):
            (value,) = re.findall(rf"{model} +{metric} +(-?[\d.]+)", text)
            assert metric.startswith("log") or float(value) > 0


@pytest.mark.slow  # the models of implicit beside ours
def test_neighbours_are_compared_with_implicit() -> None:
    pytest.importorskip("implicit")
    text = run_benchmark("neighbours.py", "--size", "20000")
    for name in ("ItemKNN, fit", "implicit, fit", "ItemKNN, lists", "UserKNN, fit"):
        assert re.search(rf"^{name} +[\d.]+ +[\d.]+$", text, re.MULTILINE), text
    assert len(re.findall(r"^ratio +[\d.]+$", text, re.MULTILINE)) == 3


@pytest.mark.slow  # a process for each stage
def test_a_log_is_audited_in_blocks(tmp_path: Path) -> None:
    lines = run_benchmark("impression_log.py", str(tmp_path), "--rows", "1200000").splitlines()
    assert lines[0] == "stage,seconds,peak_memory_mb"
    assert {"load impressions", "measure policy_value of candidate", "all"} <= {
        line.partition(",")[0] for line in lines
    }


BENCHMARK_WHOLE_JOBS = Path(__file__).parents[2] / "benchmarks" / "whole_jobs.py"


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
    command = [sys.executable, str(BENCHMARK_WHOLE_JOBS), "--turns", "1", "--jobs", "ItemKNN"]
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
