"""Whole jobs of recbias and of other tools on MovieLens 1M, each a process of its own.

    RECBIAS_DATA=/path/to/data python benchmarks/whole_jobs.py \\
        --python rectools=/venv/bin/python --python recbole=/other/bin/python ...

A job starts Python, reads a split, trains, makes the lists of 10 unseen items of all users,
computes nDCG@10 and Recall@10, and writes both. The split is made once: ratings of 4 and 5,
10-core, a random fifth of each user's rows as the test part; every tool reads it from files.
``from ratings`` are jobs of tools that also filter and split by themselves: those begin with all
ratings. A job of several models computes MRR and the hit rate too; recbias and Elliot also
test the pairs of models.

recbias is the command ``recbias run`` with an empty store. The other tools are called in
``benchmarks/peers``; what each needs is one environment, whose Python ``--python`` names (implicit
and LensKit: by default this one). A tool without Python is left out, and named.

Tools take turns. The first turn also makes lists of tools that keep none, and is not counted
unless it is the only one. Seconds are the least, memory the most of the turns: CPU seconds and the
largest process of the whole tree. ``ratio`` is CPU seconds over those of recbias for the same
job. ``nDCG of lists`` is that of the tool's lists by recbias; of several models, values are
those of the last. One thread each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from peers.recbias_runs import OURS, make_spec, name_split, read_ours, run_recbias

PEERS = Path(__file__).parent / "peers"
THREE = "MostPop,ItemKNN,EASE"
FIVE = "MostPop,ItemKNN,UserKNN,PureSVD,EASE"
RATINGS = " from ratings"
TOOLS = {
    "implicit": ("ItemKNN", "ALS"),
    "lenskit": ("ItemKNN", "EASE", "ALS"),
    "rectools": ("ItemKNN", "EASE", THREE),
    "cornac": ("EASE", "BPR"),
    "recbole": ("ItemKNN", "EASE", "BPR", THREE, "EASE" + RATINGS),
    "elliot": ("ItemKNN", "EASE", THREE, FIVE, "EASE" + RATINGS),
}
THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON")


@dataclass
class Job:
    """A job of a tool, its folder, and what its runs took: wall and CPU seconds, and MB."""

    tool: str
    models: str
    folder: Path
    costs: list[tuple[float, float, float]] = field(default_factory=list)
    values: tuple[float, float] = (0.0, 0.0)
    common: float = 0.0
    failed: bool = False

    @property
    def names(self) -> list[str]:
        return self.models.removesuffix(RATINGS).split(",")

    @property
    def from_ratings(self) -> bool:
        return self.models.endswith(RATINGS)

    def find_split(self, given: Path) -> tuple[Path, Path]:
        """Return the training and the test file: the tool's own if it split by itself."""
        if not self.from_ratings:
            return given / "train.csv", given / "test.csv"
        (train,) = self.folder.glob("**/train.[ct]sv")
        return train, train.with_stem("test")


def measure(command: list[str], folder: Path) -> tuple[float, float, float] | None:
    """Run a process; return wall and CPU seconds and MB of its tree, None if it failed."""
    ours = command[0] == sys.executable  # settings of this Python are not those of others
    environment = {name: os.environ[name] for name in os.environ if ours or name[:6] != "PYTHON"}
    environment |= {f"{library}_NUM_THREADS": "1" for library in THREADS}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONIOENCODING": "utf-8"}
    with (folder / "output.txt").open("wb") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        tail = (folder / "output.txt").read_text("utf-8", "replace").splitlines()[-5:]
        print(f"{' '.join(command)} failed:\n" + "\n".join(tail), file=sys.stderr, flush=True)
        return None
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def run_job(job: Job, pythons: dict[str, str], split: Path, *, lists: bool) -> None:
    """Run a job in an empty folder, and keep what it took and its values."""
    shutil.rmtree(job.folder, ignore_errors=True)
    job.folder.mkdir()
    if job.tool == OURS:
        command = run_recbias(
            job.folder, make_spec(job.names, split, from_ratings=job.from_ratings)
        )
    else:
        script = PEERS / f"{job.tool}_job.py"
        command = [pythons[job.tool], str(script), str(split), ",".join(job.names)]
        command += ["--lists"] * lists + ["--ratings"] * job.from_ratings
    cost = measure(command, job.folder)
    if cost is None:
        job.failed = True
        return
    job.costs.append(cost)
    print(f"{job.tool}, {job.models}: {cost[1]:.2f} s", file=sys.stderr, flush=True)
    if job.tool == OURS:
        job.values = read_ours(job.folder)[job.names[-1]]
        job.common = job.values[0]
    else:
        metrics = json.loads((job.folder / "metrics.json").read_text("utf-8"))[job.names[-1]]
        job.values = metrics["nDCG"], metrics["Recall"]


def measure_lists(jobs: list[Job], split: Path, folder: Path) -> None:
    """Measure the lists of the other tools by recbias; those of one split in one run."""
    groups: dict[tuple[Path, Path], list[Job]] = {}
    for job in jobs:
        if job.tool != OURS and not job.failed:
            groups.setdefault(job.find_split(split), []).append(job)
    for number, (paths, members) in enumerate(groups.items()):
        models = []
        for job in members:
            (path,) = (job.folder / "lists").glob(f"{job.names[-1]}.*")
            models.append({"name": "lists", "label": job.folder.name, "path": str(path)})
        spec = make_spec(members[0].names, split, from_ratings=False)
        spec |= {"split": name_split(*paths), "models": models}
        run = folder / f"common-{number}"
        run.mkdir()
        if measure(run_recbias(run, spec), run) is None:
            raise SystemExit("the lists cannot be measured")
        values = read_ours(run)
        for job in members:
            job.common = values[job.folder.name][0]


def print_table(jobs: list[Job]) -> None:
    print(
        "| job | tool | wall s | CPU s | peak MB | nDCG@10 | Recall@10 | nDCG of lists | ratio |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    ours = {job.models: min(cost[1] for cost in job.costs) for job in jobs if job.tool == OURS}
    for job in jobs:
        wall, cpu, peak = (sorted(column) for column in zip(*job.costs, strict=True))
        cells = [job.models.replace(",", ", "), job.tool, f"{wall[0]:.1f}", f"{cpu[0]:.2f}"]
        cells += [f"{peak[-1]:,.0f}", *(f"{value:.4f}" for value in (*job.values, job.common))]
        print(f"| {' | '.join(cells)} | {cpu[0] / ours[job.models]:.1f} |")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", default=[], metavar="TOOL=PATH")
    parser.add_argument("--tools", default=",".join(TOOLS), help="besides recbias")
    parser.add_argument("--jobs", action="append", help="EASE, 'EASE from ratings', ...")
    parser.add_argument("--turns", type=int, default=4, help="the first is not counted")
    return parser.parse_args()


def find_pythons(tools: list[str], named: list[str]) -> dict[str, str]:
    """Return the Python of each tool that has one; the others are printed."""
    here = [tool for tool in ("implicit", "lenskit") if find_spec(tool)]
    pythons = dict.fromkeys(here, sys.executable)
    for text in named:
        tool, _, path = text.partition("=")
        if tool not in TOOLS or not Path(path).is_file():
            raise SystemExit(
                f"--python {text}: TOOL=PATH, where TOOL is one of {', '.join(TOOLS)}"
            )
        pythons[tool] = str(Path(path).absolute())
    absent = [tool for tool in tools if tool not in pythons]
    if absent:
        print(f"left out, because no --python names them: {', '.join(absent)}\n")
    return {tool: pythons[tool] for tool in tools if tool in pythons}


def list_jobs(pythons: dict[str, str], chosen: list[str] | None, folder: Path) -> list[Job]:
    """Return the jobs of all tools, those of one kind together, ours first."""
    kinds = {kind: None for tool in pythons for kind in TOOLS[tool]} | {FIVE: None}
    pairs = [
        (tool, kind)
        for kind in chosen or kinds
        for tool in (OURS, *pythons)
        if tool == OURS or kind in TOOLS[tool]
    ]
    return [Job(tool, kind, folder / f"{tool}-{n}") for n, (tool, kind) in enumerate(pairs)]


def print_versions(pythons: dict[str, str]) -> None:
    code = "import sys; from importlib.metadata import version as v; print(sys.version.split()[0]"
    for tool, python in pythons.items():
        print(f"{tool}: ", end="", flush=True)
        subprocess.run([python, "-c", f"{code}, v({tool!r}))"], check=False)


def main() -> None:
    arguments = parse_arguments()
    data = Path(os.environ.get("RECBIAS_DATA", "")).absolute()
    if not (data / "ml-1m" / "ratings.dat").is_file():
        print("whole_jobs: skipped, set RECBIAS_DATA to a folder that holds ml-1m/")
        return
    pythons = find_pythons(arguments.tools.split(","), arguments.python)
    print_versions(pythons)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        split = folder / "split"
        split.mkdir()
        prepare = [sys.executable, str(PEERS / "prepare_split.py"), str(data), str(split)]
        subprocess.run(prepare, check=True)
        jobs = list_jobs(pythons, arguments.jobs, folder)
        for turn in range(arguments.turns):
            for job in jobs:
                if not job.failed:
                    run_job(job, pythons, split, lists=turn == 0)
            if turn == 0:
                measure_lists(jobs, split, folder)
        done = [job for job in jobs if not job.failed]
        for job in done:
            job.costs = job.costs[1:] or job.costs
        print_table(done)


if __name__ == "__main__":
    main()
