"""Whether intervals hold the truth and tests keep their level, metric by metric.

    python studies/calibration/run.py                # 200 seeds of every world
    python studies/calibration/run.py --seeds 50     # quicker
    python studies/calibration/run.py --write        # into docs/evidence
    python studies/calibration/run.py --seeds 1000 --folder /tmp/worlds   # goes on after a stop
    python studies/calibration/run.py --only "of 20 users"   # these worlds, printed
    python studies/calibration/run.py --catalogue    # only where each metric is planted

Every metric is measured in worlds in which the planted bias is known, once a seed. An interval of
95% should hold the planted figure in 95 of 100 seeds; where nothing is planted, a test at the
level of 5% should be significant in 5 of 100.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # a process a core is enough

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(Path(__file__).parent)]

from assumption_studies import write_assumption_section  # noqa: E402
from audited_studies import write_audited_section  # noqa: E402
from catalogue import find_gaps, write_catalogue_section  # noqa: E402
from dial_studies import write_dial_section  # noqa: E402
from explain_studies import write_explain_section  # noqa: E402
from files import EVIDENCE, split_page, write_tables  # noqa: E402
from gap_studies import write_gap_section  # noqa: E402
from power_studies import write_power_section  # noqa: E402
from several_groups import write_several_section  # noqa: E402
from small_group_studies import write_small_group_section  # noqa: E402
from table import write_page  # noqa: E402
from tally import Observation, Truths, observe_seed, tally_observations  # noqa: E402
from uncertain_studies import write_uncertain_section  # noqa: E402
from worlds_of_all import WORLDS  # noqa: E402

PAGE = EVIDENCE / "calibration.md"
SEEDS = 200


def select_studies(words: Sequence[str]) -> None:
    """Leave in each world the studies with one of the words, before its processes start."""
    global WORLDS  # noqa: PLW0603  the processes find a world by its position
    chosen = [
        tuple(study for study in world.studies if any(word in study.name for word in words))
        for world in WORLDS
    ]
    WORLDS = tuple(replace(world, studies=own) for world, own in zip(WORLDS, chosen, strict=True))


def run_seed(index: int, truths: Truths, seed: int) -> list[Observation]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return observe_seed(WORLDS[index], seed, truths)


def compute_truth(index: int, study_index: int) -> tuple[str, Mapping[str, float]]:
    world = WORLDS[index]
    study = world.studies[study_index]
    return study.name, world.truth(study, 0) if world.truth else {}


def run_world(pool: ProcessPoolExecutor, index: int, seeds: range) -> list[Observation]:
    """What all seeds show of a world; a truth that they share is worked out once."""
    world = WORLDS[index]
    truths: Truths = {}
    if world.truth and world.shares_truth:
        n = len(world.studies)
        truths = dict(pool.map(compute_truth, [index] * n, range(n)))
    chunk = max(1, len(seeds) // 16)
    results = pool.map(partial(run_seed, index, truths), seeds, chunksize=chunk)
    return [observation for observations in results for observation in observations]


def read_or_run_world(
    pool: ProcessPoolExecutor, index: int, seeds: range, folder: Path | None
) -> list[Observation]:
    """What a world shows: read from the folder if it is there, otherwise run and written to it."""
    if folder is None:
        return run_world(pool, index, seeds)
    first = "" if seeds.start == 1 else f", from {seeds.start}"
    path = folder / f"{WORLDS[index].name}, {len(seeds)}{first}.json"
    if path.exists():
        return [(tuple(key), *figures) for key, *figures in json.loads(path.read_text("utf-8"))]
    observations = run_world(pool, index, seeds)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(observations), "utf-8")
    unfinished.replace(path)
    return observations


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="worlds of these names, or parts of names"
    )
    parser.add_argument(
        "--studies", nargs="+", default=[""], help="of each world those of these words"
    )
    parser.add_argument("--folder", type=Path, help="stores each world, and reads those stored")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--catalogue", action="store_true", help="only where metrics are planted")
    options = parser.parse_args(arguments)
    if options.write and (options.only != [""] or options.studies != [""]):
        parser.error("--write is for all worlds: those in --folder are not run again")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(arguments)
    if options.catalogue:
        print(write_catalogue_section(WORLDS))
        sys.exit("\n".join(find_gaps(WORLDS)) or None)
    everything = WORLDS
    select_studies(options.studies)
    folder = options.folder and options.folder / "+".join(options.studies)
    words = [word for word in options.only if word not in {world.name for world in WORLDS}]
    indices = [
        index
        for index, world in enumerate(WORLDS)
        if world.studies
        and (world.name in options.only or any(word in world.name for word in words))
    ]
    begun = time.perf_counter()
    observations: list[Observation] = []
    seeds = range(options.first, options.first + options.seeds)
    with ProcessPoolExecutor(options.jobs) as pool:
        for index in indices:
            started = time.perf_counter()
            observations += read_or_run_world(pool, index, seeds, folder)
            took = time.perf_counter() - started
            print(f"{WORLDS[index].name}: {took:.0f} s", file=sys.stderr, flush=True)
    text = write_page(tally_observations(observations), WORLDS, options.seeds)
    sections = {
        "dials": write_dial_section,
        "catalogue": partial(write_catalogue_section, everything),
        "probabilities": write_uncertain_section,
        "gaps": write_gap_section,
        "several groups": write_several_section,
        "small groups": write_small_group_section,
        "parts of gaps": write_explain_section,
        "assumptions of logs": write_assumption_section,
        "audited labels": write_audited_section,
        "power": write_power_section,
    }
    for name, write_section in sections.items():
        if {"", name} & {*options.only}:
            text += write_section()
    print(text)
    print(f"{time.perf_counter() - begun:.0f} s", file=sys.stderr)
    if options.write:
        page, tables = split_page(text, "calibration")
        write_tables(tables)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
