"""Make the tables of ``recbias init logs``: what users of the demo world click in a shop.

    python studies/off_policy/make_log.py src/recbias/configs/logs

A request shows three of twelve items, drawn one after the other without replacement. The variant
``popular`` draws by popularity, ``personal`` by the taste of the user; the candidate does so more
strictly. A user sees the second item with probability 0.7 and the third with 0.5.
"""

from __future__ import annotations

import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd

from recbias.data.demo import Demo

N_USERS, N_ITEMS, N_SHOWN = 400, 12, 3
SEEN = np.array([1.0, 0.7, 0.5])
SLATES = np.array([*permutations(range(N_ITEMS), N_SHOWN)])


def weigh_slates(log_odds: np.ndarray) -> np.ndarray:
    """The probability of each ordered list of items, drawn by weights without replacement."""
    weights = np.exp(log_odds - log_odds.max())
    chance, left = np.ones(len(SLATES)), np.full(len(SLATES), weights.sum())
    for place in range(N_SHOWN):
        chosen = weights[SLATES[:, place]]
        chance, left = chance * chosen / left, left - chosen
    return chance


def find_marginals(chance: np.ndarray) -> np.ndarray:
    """The probability of each item at each position, ``[position, item]``."""
    return np.stack([np.bincount(SLATES[:, place], chance, N_ITEMS) for place in range(N_SHOWN)])


def main(folder: Path) -> None:
    """Write the tables."""
    rng = np.random.default_rng(7)
    world = Demo(n_users=N_USERS, n_items=N_ITEMS, per_user=5)
    data = world.load(folder, rng)
    odds = world.compute_odds(data.users, data.items)
    genders = data.users.frame["gender"].to_numpy()
    popular = np.log(np.maximum(data.interactions.item_counts(), 1.0)) * 0.5
    rows, candidate = [], []
    for user in range(N_USERS):
        taste = odds.by_type[odds.types[user]]
        for _ in range(rng.integers(1, 4)):
            variant = ("popular", "personal")[int(rng.integers(2))] if user % 2 else "popular"
            chance = weigh_slates(popular if variant == "popular" else 0.4 * taste)
            marginals = find_marginals(chance)
            slate = SLATES[rng.choice(len(SLATES), p=chance / chance.sum())]
            likes = 0.6 / (1 + np.exp(-(taste - taste.mean())))
            clicks = rng.random(N_SHOWN) < likes[slate] * SEEN
            request = 1 + (rows[-1][0] if rows else 0)
            rows += [
                (
                    request,
                    data.user_ids.ids[user],
                    genders[user],
                    variant,
                    place + 1,
                    data.item_ids.ids[item],
                    int(clicks[place]),
                    round(marginals[place, item], 6),
                )
                for place, item in enumerate(slate)
            ]
    for gender in np.unique(genders):
        taste = np.mean(
            [odds.by_type[odds.types[u]] for u in np.flatnonzero(genders == gender)], 0
        )
        shares = find_marginals(weigh_slates(0.8 * taste))
        candidate += [
            (gender, place + 1, data.item_ids.ids[item], shares[place, item])
            for place in range(N_SHOWN)
            for item in range(N_ITEMS)
        ]
    names = [
        "request_id",
        "user_id",
        "gender",
        "variant",
        "position",
        "item_id",
        "reward",
        "propensity",
    ]
    folder.mkdir(exist_ok=True)
    pd.DataFrame(rows, columns=names).to_csv(folder / "impressions.csv", index=False)
    names = ["gender", "position", "item_id", "probability"]
    pd.DataFrame(candidate, columns=names).to_csv(folder / "candidate.csv", index=False)
    items = data.items.frame[["genres"]].assign(item_id=data.item_ids.ids)
    items[["item_id", "genres"]].to_csv(folder / "items.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
