"""How long titles of replies take to match, as a ratio to a loop of rapidfuzz's ``extractOne``.

50,000 lines are made from the titles of MovieLens: half as in the catalogue, a fifth with one
wrong letter, the rest invented from words of two titles; a fifth have no year. ``match`` is ours,
index included; the loop compares every distinct line of a sample with every title (case and
punctuation removed by rapidfuzz's own processor), and its time is scaled to all distinct lines.

    python benchmarks/title_matching.py [--data DIR] [--lines 50000] [--sample 500]
"""

from __future__ import annotations

import argparse
import os
import random
import time
from pathlib import Path

import pandas as pd
from rapidfuzz import fuzz, process, utils

from recbias.language.titles import index_titles, restore_article, split_year

LETTERS = "abcdefghijklmnopqrstuvwxyz"
Line = tuple[str, int | None]


def read_titles(data: Path) -> list[str]:
    path = data / "ml-latest-small" / "movies.csv"
    return pd.read_csv(path)["title"].tolist()


def make_lines(titles: list[str], n: int, rng: random.Random) -> list[Line]:
    names = [(restore_article(name), year) for name, year in map(split_year, titles)]
    return [make_line(rng.choice(names), rng.choice(names), rng) for _ in range(n)]


def make_line(line: Line, other: Line, rng: random.Random) -> Line:
    (title, year), kind = line, rng.random()
    if 0.5 <= kind < 0.7:
        position = rng.randrange(len(title))
        title = title[:position] + rng.choice(LETTERS) + title[position + 1 :]
    elif kind >= 0.7:
        words, added = title.split(), other[0].split()
        title = " ".join([*words[: len(words) // 2 + 1], *added[:2]])
    return title, None if rng.random() < 0.2 else year


def measure_loop(titles: list[str], lines: list[Line], sample: int) -> float:
    """Return the seconds that the loop takes for all distinct lines."""
    choices = [utils.default_process(title) for title in titles]
    distinct = sorted({f"{title} ({year})" if year else title for title, year in lines})
    began = time.perf_counter()
    for query in random.Random(1).sample(distinct, sample):
        process.extractOne(
            utils.default_process(query), choices, scorer=fuzz.ratio, score_cutoff=90
        )
    return (time.perf_counter() - began) * len(distinct) / sample


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RECBIAS_DATA", "data")))
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--sample", type=int, default=500)
    arguments = parser.parse_args()
    titles = read_titles(arguments.data)
    lines = make_lines(titles, arguments.lines, random.Random(0))
    began = time.perf_counter()
    names, years = zip(*lines, strict=True)
    matches = index_titles(titles).match(names, years)
    seconds = time.perf_counter() - began
    loop = measure_loop(titles, lines, arguments.sample)
    print(
        f"{len(lines):,} lines ({len(set(lines)):,} distinct) against {len(titles):,} titles: "
        f"{(matches.codes >= 0).mean():.0%} matched, {matches.exact.mean():.0%} exactly"
    )
    print(f"match {seconds:.2f} s, loop {loop:.1f} s, ratio {seconds / loop:.3f}")


if __name__ == "__main__":
    main()
