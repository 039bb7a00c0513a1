"""Fine-tuning an encoder on texts, and reading texts with it, beside two other ways.

    nice python benchmarks/fine_tuning.py                 # 2 layers of 128: a minute on a CPU
    python benchmarks/fine_tuning.py --size mini          # 6 of 384, as all-MiniLM-L6: minutes
    python benchmarks/fine_tuning.py --size base          # 12 layers of 768, for a GPU
    python benchmarks/fine_tuning.py --size base --peak 312   # of a card that the table lacks

The encoder has random weights and the texts are random words, as many to a text as reviews have
(log-normal, median 50); all ways learn from the same texts, the same number of them to a step:

- **ours**: ``fine_tune`` and ``TextClassifier``, which LMRec is made of: batches of texts about as
  long, padded to a multiple of 8 tokens, bfloat16 on CUDA, fused AdamW;
- **plain loop**: float32, every text padded to 128 tokens, batches at random, AdamW;
- **Trainer**: ``transformers.Trainer`` with its defaults but for the number of texts to a step. It
  needs ``pip install accelerate`` (in the extra ``bench``); without it the script says so and goes
  on.

A token is one that stands in a text: padding does not count, in nobody's figure. Timed is one
epoch, and one reading of all texts, the best of ``--repeats``; tokenising is not timed. On a CPU
these are CPU seconds in one thread, which other work on the machine disturbs least. ``times`` is
our rate over theirs. ``of peak`` is the share of the card's bfloat16 rate: 6 operations a
weight of the layers and token (2 in reading), and 12 (4) a layer, width and pair of tokens of a
text, for the padding nothing. Before anything is timed, ours and the plain loop must give the same
chances with the same weights. A small encoder says little of a large one: what each step costs
beside its products weighs most there. The figures that count are those of ``--size base``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from recbias.language.model_files import find_model
from recbias.models.fine_tuning import FineTuning, Task, fine_tune
from recbias.models.text import EncodingSettings, TextClassifier, Tokens, tokenize_texts

MAX_LENGTH = 128
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
RATE = 5e-5

PEAKS = {
    "H100 PCIe": 756.0,
    "H100": 989.0,
    "H200": 989.0,
    "A100": 312.0,
    "L40S": 362.0,
    "L4": 121.0,
    "A10": 125.0,
    "RTX 4090": 165.0,
}
"""Dense bfloat16 operations a second as the makers state them, in 10^12, by a part of the name."""


@dataclass(frozen=True)
class Size:
    """How large the encoder is, and how much it reads."""

    layers: int
    width: int
    heads: int
    words: int
    texts: int
    batch: int
    classes: int


SIZES = {
    "small": Size(2, 128, 2, 2_000, 512, 32, 100),
    "mini": Size(6, 384, 12, 30_000, 1_024, 32, 100),
    "base": Size(12, 768, 12, 30_000, 16_384, 128, 1_000),
}


def write_encoder(folder: Path, size: Size) -> Path:
    """Write a BERT of random weights, and a tokenizer of whole words."""
    words = (*SPECIAL, *(f"w{code}" for code in range(size.words)))
    codes = {word: code for code, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(codes, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(name, codes[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    names = {f"{kind}_token": f"[{kind.upper()}]" for kind in ("pad", "unk", "cls", "sep", "mask")}
    fast: Any = transformers.PreTrainedTokenizerFast
    fast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=4 * size.width,
    )
    torch.manual_seed(0)
    model: Any = transformers.BertModel(config)
    model.save_pretrained(folder)
    return folder


def sample_texts(size: Size) -> Any:
    """Random words, with a long tail of words and of lengths."""
    rng = np.random.default_rng(0)
    lengths = np.clip(np.exp(rng.normal(np.log(50), 0.7, size.texts)), 3, 400).astype(int)
    texts = np.empty(size.texts, dtype=object)
    texts[:] = [
        " ".join(f"w{code}" for code in (size.words * rng.random(n) ** 2).astype(int))
        for n in lengths
    ]
    return texts


@dataclass(frozen=True)
class World:
    """The encoder, the texts as tokens, and the class of each."""

    folder: Path
    size: Size
    tokens: Tokens
    classes: Any
    device: torch.device

    def create_network(self) -> TextClassifier:
        """The same weights each time."""
        torch.manual_seed(1)
        reading = EncodingSettings(pooling="first", dropout=0.1, max_length=MAX_LENGTH)
        classifier = TextClassifier.create(
            find_model(str(self.folder)), self.size.classes, reading
        )
        classifier.module.to(self.device)
        return classifier

    def take_first(self, n: int) -> World:
        """The first texts only, to warm up with."""
        starts = self.tokens.starts[: n + 1]
        tokens = Tokens(self.tokens.values[: starts[-1]], starts)
        return World(self.folder, self.size, tokens, self.classes[:n], self.device)


@dataclass(frozen=True)
class Naming(Task):
    """Our task: name the class of a text."""

    network: TextClassifier
    world: World

    @property
    def module(self) -> Any:
        return self.network.module

    @cached_property
    def lengths(self) -> Any:
        return self.world.tokens.lengths

    @property
    def body(self) -> Any:
        return self.module["encoder"]

    def loss(self, rows: Any) -> Any:
        right = torch.from_numpy(self.world.classes[rows]).to(self.network.device)
        with self.network.autocast():
            logits = self.network.logits(self.world.tokens, rows)
        return torch.nn.functional.cross_entropy(logits, right, reduction="sum")

    def validation_score(self) -> float:
        return 0.0


class Ours:
    """What LMRec does."""

    name = "ours"

    def __init__(self, world: World) -> None:
        self.world, self.network = world, world.create_network()

    def learn(self) -> None:
        plan = FineTuning(
            name="ours", epochs=1, batch_size=self.world.size.batch, learning_rate=RATE
        )
        fine_tune(Naming(self.network, self.world), plan, np.random.default_rng(0))

    def read(self) -> Any:
        all_log_probabilities = np.empty(
            (len(self.world.tokens), self.world.size.classes), np.float32
        )
        tokens, network = self.world.tokens, self.network
        for rows, log_probabilities in network.infer(
            tokens, lambda rows: network.logits(tokens, rows).log_softmax(1), "texts"
        ):
            all_log_probabilities[rows] = log_probabilities
        return all_log_probabilities


class Plain:
    """A loop as it is written in an afternoon."""

    name = "plain loop"

    def __init__(self, world: World) -> None:
        self.world, self.module = world, world.create_network().module
        n = len(world.tokens)
        ids = np.zeros((n, MAX_LENGTH), dtype=np.int64)
        padded, _ = world.tokens.pad_rows(np.arange(n), 0)
        ids[:, : padded.shape[1]] = padded
        self.ids = torch.from_numpy(ids)
        self.mask = torch.from_numpy(np.arange(MAX_LENGTH) < world.tokens.lengths[:, None]).long()
        self.classes = torch.from_numpy(world.classes)

    def _compute_logits(self, rows: Any) -> Any:
        device = self.world.device
        output = self.module["encoder"](
            input_ids=self.ids[rows].to(device), attention_mask=self.mask[rows].to(device)
        )
        state = torch.nn.functional.dropout(
            output.last_hidden_state[:, 0], 0.1, training=self.module.training
        )
        return self.module["head"](state)

    def _split_batches(self, order: Any) -> Iterator[Any]:
        return iter(torch.split(order, self.world.size.batch))

    def learn(self) -> None:
        optimizer = torch.optim.AdamW(self.module.parameters(), lr=RATE, weight_decay=0.01)
        self.module.train()
        for rows in self._split_batches(torch.randperm(len(self.ids))):
            optimizer.zero_grad()
            right = self.classes[rows].to(self.world.device)
            loss: Any = torch.nn.functional.cross_entropy(self._compute_logits(rows), right)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
            optimizer.step()

    def read(self) -> Any:
        self.module.eval()
        with torch.no_grad():
            batches = [
                torch.log_softmax(self._compute_logits(rows), dim=1).cpu()
                for rows in self._split_batches(torch.arange(len(self.ids)))
            ]
        return torch.cat(batches).numpy()


class Theirs:
    """``transformers.Trainer``."""

    name = "Trainer"

    def __init__(self, world: World) -> None:
        torch.manual_seed(1)
        auto: Any = transformers
        model = auto.AutoModelForSequenceClassification.from_pretrained(
            world.folder, num_labels=world.size.classes
        )
        values, starts = world.tokens.values, world.tokens.starts
        rows = [
            {"input_ids": values[start:end].tolist(), "labels": int(label)}
            for start, end, label in zip(starts, starts[1:], world.classes, strict=False)
        ]
        self.rows = rows
        settings = auto.TrainingArguments(
            output_dir=str(world.folder / "trainer"),
            per_device_train_batch_size=world.size.batch,
            per_device_eval_batch_size=world.size.batch,
            num_train_epochs=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        self.trainer = auto.Trainer(
            model=model,
            args=settings,
            train_dataset=rows,
            processing_class=auto.AutoTokenizer.from_pretrained(world.folder),
        )

        self.trainer.remove_callback(auto.PrinterCallback)

    def learn(self) -> None:
        self.trainer.train()

    def read(self) -> Any:
        return self.trainer.predict(self.rows).predictions


def time_job(job: Callable[[], Any], device: torch.device) -> float:
    """How long a job takes, until the device is done with it; CPU seconds on a CPU."""
    if device.type != "cuda":
        start = time.process_time()
        job()
        return time.process_time() - start
    start = time.perf_counter()
    job()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def measure_rates(way: Any, world: World, repeats: int) -> tuple[float, float]:
    """Tokens a second of learning and of reading, the best of several."""
    warm_up = way(world.take_first(min(4 * world.size.batch, len(world.tokens) // 2)))
    warm_up.learn()
    warm_up.read()
    learned, read = [], []
    for _ in range(repeats):
        learner = way(world)
        learned.append(time_job(learner.learn, world.device))
        read.append(time_job(learner.read, world.device))
    n = float(world.tokens.lengths.sum())
    return n / min(learned), n / min(read)


def refuse_other_chances(world: World) -> None:
    """End where ours and the plain loop read the same texts otherwise."""
    sample = world.take_first(64)
    distance = float(np.abs(Ours(sample).read() - Plain(sample).read()).max())
    # bfloat16 has 8 bits: a hundredth of chances whose logarithms are about 5 to 7
    if distance > (0.1 if world.device.type == "cuda" else 1e-3):
        raise SystemExit(f"ours and the plain loop are {distance:g} apart")


def count_operations(world: World) -> float:
    """Operations of the layers a token in reading; learning takes three times as many."""
    lengths, size = world.tokens.lengths.astype(float), world.size
    pairs = float((lengths**2).sum() / lengths.sum())
    return size.layers * (2 * 12 * size.width**2 + 4 * pairs * size.width)


def find_peak(device: torch.device, stated: float | None) -> float | None:
    if stated is not None or device.type != "cuda":
        return stated
    name = torch.cuda.get_device_name(device)
    return next((rate for part, rate in PEAKS.items() if part in name), None)


def format_share_of_peak(rate: float, operations: float, peak: float | None) -> str:
    return "" if peak is None else f"{rate * operations / (peak * 1e12):8.1%}"


def report(world: World, repeats: int, peak: float | None) -> None:
    ways: list[Any] = [Ours, Plain]
    if importlib.util.find_spec("accelerate"):
        ways.append(Theirs)
    else:
        print("transformers.Trainer is left out: it needs accelerate (pip install accelerate)")
    work = count_operations(world)
    rates_of_way = {way.name: measure_rates(way, world, repeats) for way in ways}
    head = f"{'':12} {'learning':>12} {'times':>7} {'of peak':>8}"
    print(f"{head} {'reading':>12} {'times':>7} {'of peak':>8}   (tokens a second)")
    our_rates = rates_of_way["ours"]
    for name, (learned, read) in rates_of_way.items():
        shares = [
            format_share_of_peak(learned, 3 * work, peak),
            format_share_of_peak(read, work, peak),
        ]
        first = f"{learned:12,.0f} {our_rates[0] / learned:6.2f}x {shares[0]:>8}"
        second = f"{read:12,.0f} {our_rates[1] / read:6.2f}x {shares[1]:>8}"
        print(f"{name:12} {first} {second}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--peak", type=float, help="the card's bfloat16 rate, 10^12 a second")
    arguments = parser.parse_args()
    size = SIZES[arguments.size]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_num_threads(1 if device.type == "cpu" else torch.get_num_threads())
    logging: Any = transformers.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as name:
        folder = write_encoder(Path(name), size)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        tokens = tokenize_texts(sample_texts(size), tokenizer, MAX_LENGTH)
        classes = np.random.default_rng(1).integers(0, size.classes, size.texts)
        world = World(folder, size, tokens, classes, device)
        device_name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
        print(
            f"{device_name}, {os.cpu_count()} cores, torch {torch.__version__}; "
            f"{size.layers} layers of {size.width}, {size.texts:,} texts of "
            f"{tokens.lengths.mean():.0f} tokens on average, {size.batch} to a step"
        )
        refuse_other_chances(world)
        report(world, arguments.repeats, find_peak(device, arguments.peak))


if __name__ == "__main__":
    main()
