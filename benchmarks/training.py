"""Seconds an epoch of the models that learn by gradient, beside RecBole and Cornac.

    RECBIAS_DATA=/path/to/data python benchmarks/training.py                 # about ten minutes
    RECBIAS_DATA=/path/to/data python benchmarks/training.py --only BPR-MF   # some rows

RecBole and Cornac pin old versions of packages that recbias uses in newer ones, so that they have
an environment of their own; without them only our seconds are shown:

    python3.11 -m venv bench && bench/bin/pip install --editable '.[bench]'
    RECBIAS_DATA=/path/to/data bench/bin/python benchmarks/training.py

The split is that of the tests: ratings of 4 and 5 of MovieLens 1M, 10-core, a random fifth of each
user's held out. All train on the CPU, on the same rows, with vectors, layers, batches and numbers
of samples alike; each line says what differs. Ours and the peers take turns in this process, and
the least time of each is shown, in CPU seconds, which other work on the machine disturbs least.
All train in one thread. Setting up, drawing first values, loading and compiling are not
counted: ours is the time between two reports of an epoch, RecBole's that of its trainer's
``_train_epoch``, Cornac's what each further epoch adds to a ``fit``. ``ratio`` is the peer's time
over ours.

What the peers do otherwise: RecBole's BPR and DeepFM, and everybody's NeuMF, take each training
pair once an epoch and step by Adam; ours and Cornac's BPR draw pairs and step by SGD, by single
samples in compiled loops. Where Cornac's draws an item that the user has, it leaves the sample
out; ours draws among the others. Ours and Cornac's MF step by single ratings in compiled loops,
Cornac's in the order of the rows, ours in a new random order each epoch. Cornac's PMF learns by
single ratings too, by RMSProp; ours by batches, with Adam. Cornac's ConvMF needs TensorFlow and is
left out. Batches of ours of BPR, MF2020, MF and FunkSVD are those of a GPU; here each sample is a
step. ``A.2`` are the settings of Al Nahadi 2023, Table A.2.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from recbias.core.context import stage_context
from recbias.core.dataset import TrainingData
from recbias.data.filters_queries import KCore, Threshold
from recbias.data.movielens import MovieLens1M
from recbias.data.splits import RandomHoldout
from recbias.models.convmf import ConvMF
from recbias.models.factorization import AMF, BPRMF, MF, MF2020, PMF, FunkSVD
from recbias.models.multivae import MultiVAE
from recbias.models.pair_networks import DeepFM, NeuMF

EPOCHS = 2
"""Epochs of ours and of Cornac's that are timed in a turn, beside the first."""


class Runner(Protocol):
    """What trains, turn after turn; ``seconds`` is the least time of an epoch so far."""

    def turn(self) -> None: ...

    @property
    def seconds(self) -> float: ...


@dataclass
class Ours:
    model: Any
    data: TrainingData
    times: list[float] = field(default_factory=list)

    def turn(self) -> None:
        model = dataclasses.replace(self.model, epochs=1 + EPOCHS, patience=0, device="cpu")
        ends: list[float] = []
        with stage_context(on_progress=lambda *_: ends.append(time.process_time())):
            model.fit(self.data, np.random.default_rng(1))
        self.times += np.diff(ends[-1 - EPOCHS :]).tolist()

    @property
    def seconds(self) -> float:
        return min(self.times)


@dataclass
class RecBole:
    """A trainer of RecBole's, on rows that it reads from files as split beforehand."""

    trainer: Any
    batches: Any
    times: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, data: TrainingData, **settings: Any) -> RecBole:
        _restore_numpy_1_names()
        from recbole.config import Config
        from recbole.data import create_dataset, data_preparation
        from recbole.utils import get_model, get_trainer

        # its trainer leaves a log in the folder where it is made
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            parts = _write_atomic_files(Path(folder), data)
            fixed = {
                "data_path": folder,
                "benchmark_filename": parts,
                "load_col": {"inter": ["user_id", "item_id"]},
                "use_gpu": False,
                "show_progress": False,
                "state": "ERROR",
                "checkpoint_dir": folder,
            }
            config = Config(model=name, dataset="rows", config_dict=fixed | settings)
            batches = data_preparation(config, create_dataset(config))[0]
            model = get_model(name)(config, batches.dataset)
            return cls(get_trainer(config["MODEL_TYPE"], name)(config, model), batches)

    def turn(self) -> None:
        start = time.process_time()
        self.trainer._train_epoch(self.batches, 0, show_progress=False)  # noqa: SLF001 - nothing public trains one epoch
        self.times.append(time.process_time() - start)

    @property
    def seconds(self) -> float:
        return min(self.times)


@dataclass
class Cornac:
    """A model of Cornac's that is made for a number of epochs."""

    make: Callable[[int], Any]
    rows: Any
    short: list[float] = field(default_factory=list)
    long: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, make: Callable[[Any, int], Any], data: TrainingData) -> Cornac:
        from cornac import models
        from cornac.data import Dataset

        train = data.train
        columns = (train.users.tolist(), train.items.tolist(), train.values.tolist())
        rows = Dataset.from_uir(list(zip(*columns, strict=True)))
        return cls(lambda epochs: make(models, epochs), rows)

    def turn(self) -> None:
        for epochs, times in ((1, self.short), (1 + EPOCHS, self.long)):
            model = self.make(epochs)
            start = time.process_time()
            model.fit(self.rows)
            times.append(time.process_time() - start)

    @property
    def seconds(self) -> float:
        return (min(self.long) - min(self.short)) / EPOCHS


def _restore_numpy_1_names() -> None:
    """Give NumPy back the names of its first version that RecBole 1.2.1 looks up on import."""
    for name, kind in {
        "float_": np.float64,
        "complex_": np.complex128,
        "unicode_": np.str_,
    }.items():
        if not hasattr(np, name):
            setattr(np, name, kind)


def _write_atomic_files(folder: Path, data: TrainingData) -> list[str]:
    """Write the training rows as RecBole's files; its other parts need one row each."""
    (folder / "rows").mkdir()
    pairs = zip(data.train.users.tolist(), data.train.items.tolist(), strict=True)
    lines = [f"{user}\t{item}\n" for user, item in pairs]
    for part, rows in (("train", lines), ("valid", lines[:1]), ("test", lines[:1])):
        text = "user_id:token\titem_id:token\n" + "".join(rows)
        (folder / "rows" / f"rows.{part}.inter").write_text(text, encoding="utf-8")
    return ["train", "valid", "test"]


Peer = Callable[[TrainingData], Runner]


@dataclass(frozen=True)
class Job:
    """Our model under a name, and what it is held against.

    Args:
        name: What is shown.
        model: Ours.
        peers: By name.
        rated: Whether the rows have ratings to learn, drawn for the purpose.
    """

    name: str
    model: Any
    peers: dict[str, Peer] = field(default_factory=dict)
    rated: bool = False


def make_recbole(name: str, **settings: Any) -> Peer:
    return lambda data: RecBole.of(name, data, **settings)


def make_cornac(make: Callable[[Any, int], Any]) -> Peer:
    return lambda data: Cornac.of(make, data)


def make_bpr_peers(size: int, batch: int) -> dict[str, Peer]:
    return {
        "RecBole BPR": make_recbole("BPR", embedding_size=size, train_batch_size=batch),
        "Cornac BPR": make_cornac(
            lambda models, epochs: models.BPR(
                k=size, max_iter=epochs, learning_rate=0.05, num_threads=1, seed=1
            )
        ),
    }


def make_mf_peers(size: int, *, biased: bool) -> dict[str, Peer]:
    return {
        "Cornac MF": make_cornac(
            lambda models, epochs: models.MF(
                k=size, max_iter=epochs, use_bias=biased, num_threads=1, seed=1
            )
        )
    }


def make_pmf_peers(size: int) -> dict[str, Peer]:
    return {
        "Cornac PMF": make_cornac(
            lambda models, epochs: models.PMF(k=size, max_iter=epochs, seed=1)
        )
    }


def make_neumf_peers(size: int, batch: int) -> dict[str, Peer]:
    """All have layers of 4, 2 and 1 times a vector's length, on two vectors end to end."""
    layers = [4 * size, 2 * size, size]
    return {
        "RecBole NeuMF": make_recbole(
            "NeuMF",
            mf_embedding_size=size,
            mlp_embedding_size=size,
            mlp_hidden_size=layers,
            dropout_prob=0.0,
            train_batch_size=batch,
            train_neg_sample_args={"distribution": "uniform", "sample_num": 4},
        ),
        "Cornac NeuMF": make_cornac(
            lambda models, epochs: models.NeuMF(
                num_factors=size,
                layers=[2 * size, *layers],
                num_epochs=epochs,
                batch_size=batch // 5,  # pairs, without the 4 that it draws for each
                num_neg=4,
                backend="pytorch",
                verbose=False,
                seed=1,
            )
        ),
    }


def make_deepfm_peers(size: int, batch: int) -> dict[str, Peer]:
    return {
        "RecBole DeepFM": make_recbole(
            "DeepFM",
            embedding_size=size,
            mlp_hidden_size=[64, 32],
            dropout_prob=0.0,
            train_batch_size=batch,
            train_neg_sample_args={"distribution": "uniform", "sample_num": 4},
        )
    }


def make_multivae_peers(batch: int) -> dict[str, Peer]:
    return {
        "RecBole MultiVAE": make_recbole(
            "MultiVAE",
            mlp_hidden_size=[600],
            latent_dimension=200,
            train_batch_size=batch,
            train_neg_sample_args=None,
        ),
        "Cornac VAECF": make_cornac(
            lambda models, epochs: models.VAECF(
                k=200, autoencoder_structure=[600], n_epochs=epochs, batch_size=batch, seed=1
            )
        ),
    }


JOBS = [
    Job("BPR-MF, 64, RecBole's batch 1024", BPRMF(), make_bpr_peers(64, 1024)),
    Job(
        "BPR-MF, 256, RecBole's batch 256 (A.2)",
        BPRMF(embedding_size=256, learning_rate=0.0379),
        make_bpr_peers(256, 256),
    ),
    Job("MF2020, 32, 8 negatives", MF2020()),
    Job("MF, 32, ratings", MF(), make_mf_peers(32, biased=False), rated=True),
    Job("MF, 32, 4 negatives", MF()),
    Job("FunkSVD, 32, ratings", FunkSVD(), make_mf_peers(32, biased=True), rated=True),
    Job("FunkSVD, 32, 4 negatives", FunkSVD()),
    Job("FunkSVD, 91, 4 negatives (A.2)", FunkSVD(embedding_size=91)),
    Job(
        "FunkSVD, 91, elliot, batch 1024 (A.2)",
        FunkSVD(embedding_size=91, batch_size=1024, variant="elliot"),
    ),
    Job("PMF, 32, ratings, batch 4096", PMF(), make_pmf_peers(32), rated=True),
    Job("PMF, 32, 4 negatives, batch 4096", PMF()),
    Job(
        "PMF, 98, elliot, batch 256 (A.2)",
        PMF(embedding_size=98, batch_size=256, variant="elliot"),
    ),
    Job("NeuMF, 16, 4 negatives, batch 2048", NeuMF(), make_neumf_peers(16, 2048)),
    Job(
        "NeuMF, 16, 4 negatives, batch 256 (A.2)", NeuMF(batch_size=256), make_neumf_peers(16, 256)
    ),
    Job(
        "DeepFM, 32, 4 negatives, batch 4096",
        DeepFM(user_features="none", item_features="none"),
        make_deepfm_peers(32, 4096),
    ),
    Job(
        "DeepFM, 100, 4 negatives, batch 1024 (A.2)",
        DeepFM(embedding_size=100, batch_size=1024, user_features="none", item_features="none"),
        make_deepfm_peers(100, 1024),
    ),
    Job("MultiVAE, 200, batch 256", MultiVAE(), make_multivae_peers(256)),
    Job("MultiVAE, 200, batch 128 (A.2)", MultiVAE(batch_size=128), make_multivae_peers(128)),
    Job("ConvMF, 32, 4 negatives, batch 4096", ConvMF()),
    Job(
        "ConvMF, 64, elliot, batch 256 (A.2)",
        ConvMF(embedding_size=64, batch_size=256, variant="elliot"),
    ),
    Job("AMF, 64, batch 2048", AMF()),
    Job("AMF, 15, batch 2048 (A.2)", AMF(embedding_size=15)),
]


def load_movielens(folder: Path) -> TrainingData:
    rng = np.random.default_rng(42)
    dataset = MovieLens1M().load(folder, rng)
    for data_filter in (Threshold(at_least=4), KCore(k=10)):
        dataset = data_filter.apply(dataset, rng)
    split = RandomHoldout(test=0.2).split(dataset, 0, rng)
    return split.training_data(users=dataset.users, items=dataset.items)


def add_ratings(data: TrainingData) -> TrainingData:
    """The same rows with ratings of 1 to 5 stars, drawn: the time does not hang on them."""
    stars = np.random.default_rng(2).integers(1, 6, size=len(data.train)).astype(np.float32)
    return dataclasses.replace(data, train=dataclasses.replace(data.train, values=stars))


def create_runners(job: Job, data: TrainingData) -> dict[str, Runner]:
    """Ours under a blank name, and the peers that are installed."""
    rows = add_ratings(data) if job.rated else data
    runners: dict[str, Runner] = {"": Ours(job.model, rows)}
    for name, peer in job.peers.items():
        try:
            runners[name] = peer(rows)
        except ModuleNotFoundError as missing:
            print(f"  {name} is left out: no {missing.name}; see the top of this file")
    return runners


def time_peers(job: Job, data: TrainingData, turns: int) -> str:
    """A line a peer: all taking turns, the least time of each."""
    runners = create_runners(job, data)
    for _ in range(turns):
        for runner in runners.values():
            runner.turn()
    mine = runners.pop("").seconds
    lines = [
        f"{job.name:44} {mine:8.4f}   {name:16} {peer.seconds:8.4f} {peer.seconds / mine:7.1f}x"
        for name, peer in runners.items()
    ]
    return "\n".join(lines or [f"{job.name:44} {mine:8.4f}"])


def select_jobs(only: Sequence[str]) -> list[Job]:
    return [job for job in JOBS if not only or any(job.name.startswith(name) for name in only)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="names that the rows begin with")
    parser.add_argument("--turns", type=int, default=3, help="how often each trains")
    arguments = parser.parse_args()
    sys.argv = sys.argv[:1]  # RecBole reads it
    warnings.filterwarnings("ignore", module="recbole")  # what pandas and torch will give up
    folder = Path(os.environ.get("RECBIAS_DATA", ""))
    if not (folder / "ml-1m" / "ratings.dat").is_file():
        print("training: skipped, set RECBIAS_DATA to a folder that holds ml-1m/")
        return
    import torch

    torch.set_num_threads(1)  # of the peers; ours set their own
    data = load_movielens(folder)
    train = data.train
    print(f"{train.n_users:,} users, {train.n_items:,} items, {len(train):,} training rows")
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, best of {arguments.turns} turns\n")
    print(f"{'an epoch of':44} {'seconds':>8}   {'beside':16} {'seconds':>8} {'ratio':>8}")
    for job in select_jobs(arguments.only):
        print(time_peers(job, data, arguments.turns), flush=True)


if __name__ == "__main__":
    main()
