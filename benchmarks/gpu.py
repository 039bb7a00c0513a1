"""What a GPU is used for, in one command meant for ten minutes, as a table in Markdown.

    python benchmarks/gpu.py              # on a machine with a GPU
    python benchmarks/gpu.py --rehearse   # tiny sizes, on a CPU: a minute

- **encoder**: fine-tuning and reading of a BERT-base-sized encoder (``fine_tuning.py``), beside a
  plain loop and ``transformers.Trainer`` with its defaults, in tokens a second.
- **causal model**: the same of a causal model of half a billion weights (24 layers of 896): the
  log-probabilities of sentences by ``score_sentences`` beside one padded batch after another in
  the order of the file, and training by ``SentenceTraining`` beside ``transformers.Trainer``.
- **lists**: the best ten of a million items for users of a million, by 64 factors, beside
  ``torch.topk`` of whole rows of scores, and FAISS if it is installed; ours also leaves out what
  the users have. 20,000 users are asked: the rate is that of a million.
- **EASE, PureSVD, ItemKNN, UserKNN**: their fits, and lists of item-to-item weights, by tensors on
  the card beside the same by arrays on all cores of the CPU, in users a second.
- **NeuMF**: training by steps that are captured as a CUDA graph beside others, in samples a
  second, without the first epoch, in which the step is captured.

Weights are random, texts are random words. ``of peak`` is the share of the card's dense bfloat16
rate, see ``fine_tuning.py``. Padding counts in nobody's figure.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import fine_tuning
import ranking
from recbias.core.context import stage_context
from recbias.core.dataset import TrainingData
from recbias.kernels.neighbours import Similarity, find_nearest
from recbias.language.likelihood import score_sentences
from recbias.language.local_models import (
    LocalModel,
    ScoringSettings,
    SentenceTokens,
    load_model,
    tokenize_sentences,
)
from recbias.models import training
from recbias.models.debias import Debias, SentenceTraining
from recbias.models.fine_tuning import FineTuning, fine_tune
from recbias.models.fitted import FittedFactors
from recbias.models.gpu import (
    find_nearest_on_device,
    find_right_singular_vectors,
    rank_product_on_device,
    regress_items,
)
from recbias.models.linear import EASE, MAX_SINGLE_PRECISION_NORM, PureSVD
from recbias.models.pair_networks import NeuMF
from recbias.models.ranking import rank_by_product

RATE = 1e-5

PARTS = ("encoder", "causal", "lists", "models", "training")


@dataclass(frozen=True)
class Lists:
    """The sizes of the lists."""

    users: int
    items: int
    factors: int
    asked: int


@dataclass(frozen=True)
class World:
    """The sizes of the interactions of EASE and others, and of the training of NeuMF."""

    users: int
    items: int
    per_user: int
    factors: int
    batch: int
    epochs: int


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run: encoder, causal model (with key-value heads), lists, interactions."""

    encoder: fine_tuning.Size
    causal: fine_tuning.Size
    kv_heads: int
    lists: Lists
    world: World


FULL = Sizes(
    dataclasses.replace(fine_tuning.SIZES["base"], texts=32_768),
    fine_tuning.Size(24, 896, 14, 30_000, 8_192, 32, 0),
    2,
    Lists(1_000_000, 1_000_000, 64, 20_000),
    World(60_000, 20_000, 100, 64, 2048, 2),
)
TINY = Sizes(
    fine_tuning.Size(1, 16, 2, 200, 96, 16, 5),
    fine_tuning.Size(1, 16, 2, 200, 64, 16, 0),
    1,
    Lists(300, 500, 8, 200),
    World(300, 200, 20, 8, 128, 2),
)


def print_row(part: str, way: str, rate: float, ours: float, peak: str = "") -> None:
    """Print one line: the rate, ours over it, and the share of the peak."""
    print(f"| {part} | {way} | {rate:,.0f} | {ours / rate:.2f} | {peak.strip()} |", flush=True)


def run_encoder(size: fine_tuning.Size, device: torch.device, peak: float | None) -> None:
    """Fine-tune and read an encoder in each way."""
    with tempfile.TemporaryDirectory() as name:
        folder = fine_tuning.write_encoder(Path(name), size)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        texts = fine_tuning.sample_texts(size)
        tokens = fine_tuning.tokenize_texts(texts, tokenizer, fine_tuning.MAX_LENGTH)
        classes = np.random.default_rng(1).integers(0, size.classes, size.texts)
        world = fine_tuning.World(folder, size, tokens, classes, device)
        fine_tuning.refuse_other_chances(world)
        ways: list[Any] = [fine_tuning.Ours, fine_tuning.Plain]
        if importlib.util.find_spec("accelerate"):
            ways.append(fine_tuning.Theirs)
        rates = {way.name: fine_tuning.measure_rates(way, world, 1) for way in ways}
        work = fine_tuning.count_operations(world)
    for place, part in enumerate(("encoder, fine-tuning", "encoder, reading")):
        operations = (3 if place == 0 else 1) * work
        for way, both in rates.items():
            share = fine_tuning.format_share_of_peak(both[place], operations, peak)
            print_row(part, way, both[place], rates["ours"][place], share)


def write_causal_model(folder: Path, size: fine_tuning.Size, kv_heads: int) -> Path:
    """Write a Llama of random weights in safetensors, with a tokenizer of whole words."""
    fine_tuning.write_encoder(folder, fine_tuning.Size(1, 8, 1, size.words, 1, 1, 1))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"bos_token": "[CLS]", "eos_token": "[SEP]"})
    tokenizer.save_pretrained(folder)
    library: Any = transformers
    torch.manual_seed(0)
    config = library.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=kv_heads,
        intermediate_size=5 * size.width,
        max_position_embeddings=1_024,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    library.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Causal:
    """A causal model and the tokens that it reads."""

    folder: Path
    size: fine_tuning.Size
    model: LocalModel
    texts: list[str]
    settings: ScoringSettings
    tokens: SentenceTokens

    @classmethod
    def load(
        cls, folder: Path, size: fine_tuning.Size, device: torch.device, precision: Any
    ) -> Causal:
        """Read the model, and cut the texts into tokens."""
        name: Any = device.type
        model = load_model(str(folder), precision=precision, device=name)
        texts = [str(text) for text in fine_tuning.sample_texts(size)]
        settings = ScoringSettings(batch_tokens=32_768, max_length=128).complete(model)
        tokens = tokenize_sentences(model, texts, settings)
        return cls(folder, size, model, texts, settings, tokens)

    @property
    def n_tokens(self) -> float:
        """The tokens that are read, without padding."""
        return float(np.minimum(self.tokens.lengths, self.settings.max_length).sum())

    def read(self) -> None:
        """Read as recbias does."""
        score_sentences(self.model, self.texts, self.settings)

    def read_plainly(self) -> None:
        """Read the texts in their order, each batch padded to its longest, all logits kept."""
        tokenizer, network = self.model.tokenizer, self.model.network
        for start in range(0, len(self.texts), self.size.batch):
            batch = tokenizer(
                self.texts[start : start + self.size.batch],
                padding=True,
                truncation=True,
                max_length=self.settings.max_length,
                return_tensors="pt",
            ).to(network.device)
            batch.pop("token_type_ids", None)
            with torch.inference_mode():
                logits = network(**batch, use_cache=False).logits[:, :-1].float().log_softmax(-1)
                logits.gather(2, batch["input_ids"][:, 1:, None]).cpu()

    def learn(self) -> None:
        """Train for one epoch as recbias does."""
        task = SentenceTraining(
            self.model, self.tokens, self.settings, None, Debias(method="CTDA"), "auto"
        )
        plan = FineTuning(
            name="causal model", epochs=1, batch_size=self.size.batch, learning_rate=RATE
        )
        fine_tune(task, plan, np.random.default_rng(0))

    def learn_by_trainer(self) -> None:
        """Train for one epoch by ``transformers.Trainer`` with its defaults."""
        library: Any = transformers
        network = library.AutoModelForCausalLM.from_pretrained(self.folder)
        values, starts = self.tokens.values, self.tokens.starts
        limit = self.settings.max_length
        rows = [
            {"input_ids": values[start : min(end, start + limit)].tolist()}
            for start, end in pairwise(starts)
        ]
        tokenizer = self.model.tokenizer
        arguments = library.TrainingArguments(
            output_dir=str(self.folder / "trainer"),
            per_device_train_batch_size=self.size.batch,
            num_train_epochs=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        collator = library.DataCollatorForLanguageModeling(tokenizer, mlm=False)
        trainer = library.Trainer(
            model=network, args=arguments, train_dataset=rows, data_collator=collator
        )
        trainer.remove_callback(library.PrinterCallback)
        trainer.train()


def print_causal_rates(
    part: str,
    ways: dict[str, Callable[[], None]],
    causal: Causal,
    device: torch.device,
    peak: float | None,
) -> None:
    """Print the tokens a second of each way; a weight takes 2 operations, in training 6."""
    weights = sum(each.numel() for each in causal.model.network.parameters())
    rates = {way: causal.n_tokens / fine_tuning.time_job(job, device) for way, job in ways.items()}
    operations = (2 if part == "reading" else 6) * weights
    for way, rate in rates.items():
        share = fine_tuning.format_share_of_peak(rate, operations, peak)
        print_row(f"causal model, {part}", way, rate, rates["ours"], share)


def run_causal_model(
    size: fine_tuning.Size, kv_heads: int, device: torch.device, peak: float | None
) -> None:
    """Read and train a causal model in each way."""
    with tempfile.TemporaryDirectory() as name:
        folder = write_causal_model(Path(name), size, kv_heads)
        reduced: Any = "bfloat16" if device.type == "cuda" else "float32"
        reader = Causal.load(folder, size, device, reduced)
        reader.read()  # warms up
        readers = {"ours": reader.read, "plain loop": reader.read_plainly}
        print_causal_rates("reading", readers, reader, device, peak)
        del reader
        learner = Causal.load(folder, size, device, "float32")
        learner.learn()  # warms up
        ways: dict[str, Callable[[], None]] = {"ours": learner.learn}
        if importlib.util.find_spec("accelerate"):
            ways["Trainer"] = learner.learn_by_trainer
        print_causal_rates("training", ways, learner, device, peak)


def rank_by_topk(p: Any, q: Any, users: Any, device: torch.device) -> Any:
    """Return the ten best items by whole rows of scores, in blocks of about 4 GB."""
    vectors, items = torch.tensor(p[users], device=device), torch.tensor(q, device=device)
    block = max(1, 2**30 // len(q))
    lists = [
        (vectors[start : start + block] @ items.T).topk(ranking.K).indices.cpu()
        for start in range(0, len(users), block)
    ]
    return torch.cat(lists).numpy()


def rank_by_faiss(p: Any, q: Any, users: Any, device: torch.device) -> Any:
    """Return the ten best items by FAISS's exact search."""
    import faiss

    index = faiss.IndexFlatIP(q.shape[1])
    if device.type == "cuda":
        index = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)
    index.add(q)
    return index.search(p[users], ranking.K)[1]


def run_lists(size: Lists, device: torch.device) -> None:
    """Rank items by factors in each way; ours leaves out the items of the users' histories."""
    rng = np.random.default_rng(0)
    data = ranking.sample_world(size.users, size.items, 10, rng)
    shapes = (size.users, size.items)
    p, q = (rng.standard_normal((n, size.factors), dtype=np.float32) for n in shapes)
    users = np.sort(rng.choice(size.users, size.asked, replace=False))
    queries = ranking.make_queries(data, users)
    name: Any = device.type
    factors = FittedFactors(p, q, device=name)
    ways: dict[str, Callable[[], Any]] = {
        "ours": lambda: factors.recommend(queries, ranking.K, data).items,
        "torch.topk": partial(rank_by_topk, p, q, users, device),
    }
    if importlib.util.find_spec("faiss"):
        ways["FAISS"] = partial(rank_by_faiss, p, q, users, device)
    factors.recommend(queries.take(np.arange(2)), ranking.K, data)  # warms up
    rates = {way: size.asked / fine_tuning.time_job(job, device) for way, job in ways.items()}
    part = f"lists, {size.users:,} users x {size.items:,} items"
    for way, rate in rates.items():
        print_row(f"{part} (users a second)", way, rate, rates["ours"])


def sample_interactions(size: World) -> TrainingData:
    """Sample interactions of which the most popular items have most."""
    rng = np.random.default_rng(0)
    data = ranking.sample_world(size.users, size.items, size.per_user, rng)
    items = (size.items * rng.random(len(data.train)) ** 3).astype(np.int32)
    return TrainingData(dataclasses.replace(data.train, items=items))


def run_models(size: World, device: torch.device) -> None:
    """Fit and rank by tensors and by arrays."""
    data, rng = sample_interactions(size), np.random.default_rng(0)
    matrix, queries = data.train.binary, ranking.make_queries(data, np.arange(size.users))
    by_item = matrix.T.tocsr()
    limits: Any = {"max_norm": MAX_SINGLE_PRECISION_NORM}
    weights = regress_items(by_item, 500.0, device, **limits)  # warms up
    lists = (matrix, weights, queries, ranking.K, data)
    jobs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "EASE": (
            lambda: regress_items(by_item, 500.0, device, **limits),
            lambda: EASE(device="cpu").fit(data, rng),
        ),
        "lists of EASE": (
            lambda: rank_product_on_device(*lists, device),
            lambda: rank_by_product(*lists),
        ),
        "PureSVD": (
            lambda: find_right_singular_vectors(matrix, size.factors, device),
            lambda: PureSVD(factors=size.factors, device="cpu").fit(data, rng),
        ),
        "ItemKNN": (
            lambda: find_nearest_on_device(by_item, 100, Similarity(), device),
            lambda: find_nearest(by_item, 100),
        ),
        "UserKNN": (
            lambda: find_nearest_on_device(matrix, 100, Similarity(), device),
            lambda: find_nearest(matrix, 100),
        ),
    }
    for part, (by_tensors, by_arrays) in jobs.items():
        ours, theirs = (
            size.users / max(fine_tuning.time_job(job, device), 1e-9)
            for job in (by_tensors, by_arrays)
        )
        print_row(f"{part} (users a second)", "ours", ours, ours)
        print_row(f"{part} (users a second)", "ours, by arrays on the CPU", theirs, ours)


def time_epoch(size: World, data: TrainingData, device: torch.device) -> float:
    """Return the seconds of the shortest epoch of NeuMF but the first."""
    name: Any = device.type
    model = NeuMF(epochs=1 + size.epochs, batch_size=size.batch, patience=0, device=name)
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    ends: list[float] = []
    with stage_context(on_progress=lambda *_: ends.append(clock())):
        model.fit(data, np.random.default_rng(0))
    return min(end - start for start, end in pairwise(ends[1:]))


def run_training(size: World, device: torch.device) -> None:
    """Train NeuMF by captured steps, and by others."""
    data = sample_interactions(dataclasses.replace(size, users=size.users // 10))
    rates = {}
    for way, least in (("ours, a CUDA graph", 1), ("ours, kernel by kernel", 10**9)):
        training.MIN_CAPTURED_STEPS = least
        rates[way] = 5 * data.train.binary.nnz / time_epoch(size, data, device)
    for way, rate in rates.items():
        print_row("NeuMF, training (samples a second)", way, rate, rates["ours, a CUDA graph"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rehearse", action="store_true", help="tiny sizes, on a CPU")
    parser.add_argument("--parts", nargs="*", choices=PARTS, help="some of the parts; all of them")
    parser.add_argument("--peak", type=float, help="the card's bfloat16 rate, 10^12 a second")
    options = parser.parse_args()
    if not options.rehearse and not torch.cuda.is_available():
        print("no GPU on this machine: --rehearse runs tiny sizes on a CPU")
        return
    sizes = TINY if options.rehearse else FULL
    device = torch.device("cpu" if options.rehearse else "cuda")
    library: Any = transformers
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    peak = fine_tuning.find_peak(device, options.peak)
    card = torch.cuda.get_device_name() if device.type == "cuda" else "CPU, tiny sizes"
    print(f"{card}, torch {torch.__version__}, transformers {transformers.__version__}\n")
    print("| part | way | tokens a second, or as said | ours / way | of peak |")
    print("|---|---|--:|--:|--:|")
    parts: dict[str, Callable[[], None]] = {
        "encoder": lambda: run_encoder(sizes.encoder, device, peak),
        "causal": lambda: run_causal_model(sizes.causal, sizes.kv_heads, device, peak),
        "lists": lambda: run_lists(sizes.lists, device),
        "models": lambda: run_models(sizes.world, device),
        "training": lambda: run_training(sizes.world, device),
    }
    for name in options.parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
