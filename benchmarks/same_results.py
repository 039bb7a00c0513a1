"""Whether two versions of the source give the same result files, byte for byte.

Run it once with each version, then compare the two folders:

    PYTHONPATH=OLD/src python benchmarks/same_results.py run before
    PYTHONPATH=src python benchmarks/same_results.py run after
    python benchmarks/same_results.py compare before after

Real data is read from ``RECBIAS_DATA``. Trainings that take minutes are shortened, in both
versions alike; the settings stand in ``RUNS``. Both runs need the same machine and libraries.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

CONFIGS = Path(__file__).parents[1] / "configs"
RESULT_FILES = ("metrics.csv", "significance.csv", "per_unit.parquet", "lists.parquet")

SHORT_LMREC = ("models.0.epochs=1", "models.0.max_length=24", "models.2.max_length=24")
RUNS: dict[str, tuple[str, ...]] = {
    "quickstart": (),
    "demo-bias": (),
    "demo-vectors": (),
    "audit": (),
    "prompts": (),
    "other-tools/quickstart": (),
    "papers/chbias/own-scores": (),
    "ml-1m": (),
    "ml-1m-children": (),
    "papers/aab/ml-1m-gender": (),
    "papers/wok/baselines-ml-1m": (),
    "papers/children/ngim-ml-1m": (),
    "papers/children/a4-side": (),
    "papers/children/a5-ngim": (),
    "papers/children/table-5-1": (),
    "papers/children/a3": (),
    "papers/children/a3-elliot": tuple(
        f"models.{index}.epochs={epochs}"
        for index, epochs in enumerate((5, 5, 5, 5, 2, 1, 1, 1, 1, 2), start=2)
    ),
    "papers/children/a3-tuned": tuple(f"models.{index}.tune.trials=2" for index in range(5)),
    "papers/lmrec/yelp-layout": SHORT_LMREC,
    "papers/lmrec/mitigation-masking": SHORT_LMREC,
    "papers/lmrec/mitigation-reranking": ("models.0.epochs=1", "models.0.max_length=24"),
    "papers/lmrec/mitigation-counterfactual": tuple(
        f"models.{index}.{setting}"
        for index in range(3)
        for setting in ("epochs=1", "max_length=24")
    ),
}
"""The specs that run on the demo dataset or ``RECBIAS_DATA``, and settings that shorten them."""


def run_specs(folder: Path, names: list[str]) -> int:
    """Run each spec with the results in one folder; return the number of failures."""
    failures = 0
    for name, settings in RUNS.items():
        if names and name not in names:
            continue
        start = time.monotonic()
        options = [option for setting in settings for option in ("--set", setting)]
        spec = CONFIGS / f"{name}.yaml"
        command = [sys.executable, "-m", "recbias", "run", spec, "--out", folder, *options]
        run = subprocess.run(
            [*map(str, command), "--quiet"],
            env={**os.environ, "OMP_NUM_THREADS": "2"},
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"{name}: exit {run.returncode}, {time.monotonic() - start:.0f} s", flush=True)
        if run.returncode:
            print(run.stderr[-2000:], flush=True)
            failures += 1
    return failures


def compare_folders(before: Path, after: Path) -> Iterator[tuple[str, str]]:
    """Yield each result file and whether it is ``equal``, ``different`` or ``missing``."""
    for run in sorted(before.glob("*/latest")):
        other = after / run.relative_to(before)
        for file in RESULT_FILES:
            if (run / file).is_file():
                name = f"{run.parent.name}/{file}"
                if not (other / file).is_file():
                    yield name, "missing"
                else:
                    same = (run / file).read_bytes() == (other / file).read_bytes()
                    yield name, "equal" if same else "different"


def main() -> int:
    """Run or compare, as the command line says."""
    command, *arguments = sys.argv[1:]
    if command == "run":
        return run_specs(Path(arguments[0]).resolve(), arguments[1:])
    verdicts = list(compare_folders(*map(Path, arguments)))
    for file, verdict in verdicts:
        print(f"{verdict:9} {file}")
    unequal = sum(verdict != "equal" for _, verdict in verdicts)
    print(f"{len(verdicts) - unequal} of {len(verdicts)} files are equal")
    return int(unequal > 0 or not verdicts)


if __name__ == "__main__":
    sys.exit(main())
