"""How often audits that are looked at after every persona raise a false alarm, and when they stop.

    python studies/sequences.py [--audits 2000] [--personas 1000]

An audit is a series of effects on personas. Without an effect, an alarm at any look is false.
With one, the personas that a sequence needs are compared with those of a test with a fixed number
that finds the effect as often: Student's t-test at the same level.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import numpy as np

from recbias.core.dataset import FloatArray
from recbias.statistics.confidence_sequences import Bets, Betting, NormalMixture

ALPHA = 0.05
Draw = Callable[[np.random.Generator, int], FloatArray]
NULLS: Mapping[str, tuple[Bets, Draw]] = {
    "log prices, normal": (NormalMixture(), lambda rng, n: rng.normal(0, 0.05, n)),
    "log prices, t with 3 df": (NormalMixture(), lambda rng, n: rng.standard_t(3, n) * 0.05),
    "log prices, one of ten differs": (
        NormalMixture(),
        lambda rng, n: rng.normal(0, 0.05, n) * (rng.random(n) < 0.1),
    ),
    "overlaps": (Betting(-1.0), lambda rng, n: rng.beta(8, 4, n) - rng.beta(8, 4, n)),
    "shares of ten items": (
        Betting(-1.0),
        lambda rng, n: (rng.binomial(10, 0.2, n) - rng.binomial(10, 0.2, n)) / 10,
    ),
    "log prices, skewed (no null of a probe)": (
        NormalMixture(),
        lambda rng, n: np.exp(rng.normal(0, 1, n)) - np.exp(0.5),
    ),
}


def count_alarms(bets: Bets, draw: Draw, n_audits: int, n_personas: int) -> float:
    """Return the share of audits with an alarm at any look."""
    alarms = 0
    for seed in range(n_audits):
        values = draw(np.random.default_rng(seed), n_personas)
        alarms += bool((bets.log_e(values, 0.0) >= np.log(1 / ALPHA)).any())
    return alarms / n_audits


def compare_sizes(effect: float, power: float, n_audits: int) -> tuple[float, int, float]:
    """Return the median stop, the fixed number for a power, and the share that is decided by it.

    The effect is in standard deviations of the effects on personas, which are normal.
    """
    from scipy.stats import norm

    fixed = int(np.ceil(((norm.isf(ALPHA / 2) + norm.ppf(power)) / effect) ** 2))
    stops = []
    for seed in range(n_audits):
        values = np.random.default_rng(seed).normal(effect, 1, 4 * fixed)
        decided = np.flatnonzero(NormalMixture().log_e(values, 0.0) >= np.log(1 / ALPHA))
        stops.append(decided[0] + 1 if decided.size else np.inf)
    return float(np.median(stops)), fixed, float(np.mean(np.array(stops) <= fixed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--personas", type=int, default=1000)
    options = parser.parse_args()
    print("| effects on personas | false alarms |\n|---|--:|")
    for name, (bets, draw) in NULLS.items():
        share = count_alarms(bets, draw, options.audits, options.personas)
        print(f"| {name} | {share:.1%} |")
    print("\n| effect / sd | power | fixed | median stop | share of fixed | decided by then |")
    print("|--:|--:|--:|--:|--:|--:|")
    for effect in (1.0, 0.5, 0.25):
        for power in (0.8, 0.95, 0.99):
            stop, fixed, decided = compare_sizes(effect, power, options.audits)
            cells = (f"{stop:.0f}", f"{stop / fixed:.0%}", f"{decided:.0%}")
            print(f"| {effect} | {power:.0%} | {fixed} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
