from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import collect_warnings
from recbias.core.errors import Contradiction, MissingFile, WrongType
from recbias.core.evidence import Evidence, Responses
from recbias.metrics.text import (
    BLEU,
    Distinct,
    EmbeddingAverage,
    GreedyMatching,
    RougeL,
    UnigramF1,
    compute_bleu,
    count_bleu_statistics,
    rouge_l,
)
from recbias.statistics.bootstrap import compare_replicates
from support.worlds.evidence_worlds import make_user_queries, make_vocabulary, measure_one

sacrebleu = pytest.importorskip("sacrebleu")
pytest.importorskip("rouge_score")

HELD = (BLEU(), RougeL(), UnigramF1())


def make_evidence(
    texts: list[str], references: list[str | None] | None = None, **fields: Any
) -> Evidence:
    ids = np.array([f"q{row}" for row in range(len(texts))], dtype=object)
    reference_column = references if references is not None else [None] * len(texts)
    responses = Responses(
        ids, np.array(texts, dtype=object), np.array(reference_column, dtype=object)
    )
    return Evidence(
        make_user_queries(0), make_vocabulary("i", 0), responses=responses, metric="it", **fields
    )


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # "a b c d" against "a b x d": right 1-grams a b d of 4, 2-grams ab of 3; as long
        (BLEU(n=1, tokenize="none"), 75.0),
        (BLEU(n=2, tokenize="none"), 50.0),  # 100 sqrt(3/4 x 1/3)
        # 4 tokens and 4 tokens share a b d: 6/8, and all three stand in order
        (UnigramF1(), 0.75),
        (RougeL(tokens="words"), 0.75),
        (Distinct(n=1), 1.0),
    ],
)
def test_values_equal_those_worked_by_hand(metric: Any, expected: float) -> None:
    measurement = measure_one(metric, make_evidence(["a b c d"], ["a b x d"]))
    assert measurement.value == pytest.approx(expected)
    assert (measurement.n, measurement.undefined) == (1, 0)


@pytest.mark.parametrize(
    ("n", "tokens", "expected"),
    [
        # ab a b a | a b: words ab a b a a b: 3 distinct of 6
        (1, "words", 3 / 6),
        # ab-a a-b b-a | a-b: 3 distinct of 4
        (2, "words", 3 / 4),
        # characters a b a b a | a b: 2 of 7; pairs ab ba ab ba | ab: 2 of 5
        (1, "characters", 2 / 7),
        (2, "characters", 2 / 5),
    ],
)
def test_distinct_by_hand(n: int, tokens: Any, expected: float) -> None:
    measurement = measure_one(Distinct(n=n, tokens=tokens), make_evidence(["ab a b a", "a b", ""]))
    assert measurement.value == pytest.approx(expected)
    assert (measurement.n, measurement.undefined) == (2, 1)


def test_characters_are_for_chinese() -> None:
    of = make_evidence(["今天 天气很好"], ["今天的天气很好"])
    with pytest.warns(UserWarning, match="no blanks between words"):
        assert measure_one(UnigramF1(), of).value == 0.0  # no word is the same
    # six characters, all of them among the seven: 12/13
    assert measure_one(UnigramF1(tokens="characters"), of).value == pytest.approx(12 / 13)
    assert measure_one(RougeL(tokens="characters"), of).value == pytest.approx(12 / 13)
    direct = sacrebleu.corpus_bleu(["今天 天气很好"], [["今天的天气很好"]], tokenize="zh")
    assert measure_one(BLEU(tokenize="zh"), of).value == pytest.approx(direct.score)


@pytest.mark.parametrize("metric", HELD)
def test_a_response_without_reference_is_left_out_counted_and_said(metric: Any) -> None:
    whole = make_evidence(["a b c d e", "a b c d"], ["a b c d f", "x b c d"])
    with collect_warnings() as notes:
        measurement = measure_one(
            metric, make_evidence(["a b c d e", "z", "a b c d"], ["a b c d f", None, "x b c d"])
        )
    assert notes == ["it: 1 of 3 responses have no reference"]
    assert measurement.value == pytest.approx(measure_one(metric, whole).value)
    assert (measurement.n, measurement.undefined) == (2, 1)


def test_unigram_f1_keeps_case_and_punctuation() -> None:
    of = make_evidence(["The street."], ["the street"])
    assert measure_one(UnigramF1(), of).value == 0
    assert measure_one(RougeL(), of).value == 1


def test_samples_of_bleu_are_the_figure_of_resampled_responses() -> None:
    metric = BLEU(n=2, tokenize="none")
    rng = np.random.default_rng(5)
    texts, references = (
        [" ".join(rng.choice(list("abcdefgh"), rng.integers(2, 7))) for _ in range(30)]
        for _ in range(2)
    )
    measurement = measure_one(
        metric, make_evidence(texts, [*references], n_bootstrap=20, bootstrap_seed=11)
    )
    draws = np.random.default_rng(11)
    expected = []
    for _ in range(20):
        rows = draws.integers(30, size=30)
        sample = make_evidence(
            [texts[row] for row in rows], [references[row] for row in rows], n_bootstrap=1
        )
        expected.append(measure_one(metric, sample).value)
    assert measurement.replicates == pytest.approx(np.array(expected))
    half = 1.959963984540054 * float(np.std(expected, ddof=1))
    assert (measurement.ci_low, measurement.ci_high) == pytest.approx(
        (measurement.value - half, measurement.value + half)
    )


def test_models_that_are_as_varied_differ_by_chance_in_five_of_a_hundred_worlds() -> None:
    """Samples that hold a response twice, as those of the bootstrap do, find far more."""
    weights = 1 / np.arange(1, 401)
    letters = np.array([f"w{number}" for number in range(400)])
    significant = 0
    for seed in range(100):
        words = np.random.default_rng(seed).choice(letters, (2, 60, 8), p=weights / weights.sum())
        a, b = (
            measure_one(
                Distinct(n=2), make_evidence([" ".join(row) for row in side], n_bootstrap=200)
            )
            for side in words
        )
        samples = np.stack([np.asarray(measurement.replicates) for measurement in (a, b)])
        p = compare_replicates(np.array([a.value, b.value]), samples, 0.05)["p"]
        significant += int(p[0] <= 0.05)
    assert significant <= 10


rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")

TEXTS = ["the cat sat on the mat .", "a dog", "", "Hello, world!", "the the the the"]
REFERENCES = ["the cat is on the mat .", "a dog ran off", "nothing", "Hello world", "the cat"]
CHINESE = ["今天天气很好", "我喜欢看电影"], ["今天的天气很好", "我不喜欢看电影"]


def make_objects(texts: list[str]) -> np.ndarray:
    return np.array(texts, dtype=object)


def test_statistics_by_hand() -> None:
    # "a b c d" against "a b c": right 1-grams a b c of 4, right 2-grams ab bc of 3; lengths 4, 3
    statistics = count_bleu_statistics(
        make_objects(["a b c d"]), make_objects(["a b c"]), n=2, tokenize="none"
    )
    assert statistics.tolist() == [[3, 2, 4, 3, 4, 3]]
    # 100 sqrt(3/4 x 2/3) = 70.71, as long as its reference or longer
    assert compute_bleu(statistics[0], 2) == pytest.approx(100 * math.sqrt(0.5))


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("tokenize", ["13a", "zh", "char", "intl", "none"])
def test_the_sums_give_sacrebleus_corpus_figure(n: int, tokenize: str) -> None:
    for texts, references in ((TEXTS, REFERENCES), CHINESE):
        statistics = count_bleu_statistics(
            make_objects(texts), make_objects(references), n=n, tokenize=tokenize
        )
        direct = sacrebleu.metrics.BLEU(tokenize=tokenize, max_ngram_order=n)
        expected = direct.corpus_score(texts, [references]).score
        assert compute_bleu(statistics.sum(axis=0), n) == pytest.approx(expected)


@pytest.mark.parametrize("tokens", ["rouge", "words", "characters"])
def test_rouge_of_a_subsequence(tokens: str) -> None:
    # "a b c d" against "a c e": a c in order, P 2/4, R 2/3, F 4/7
    scores = rouge_l(["a b c d"], ["a c e"], tokens)  # type: ignore[arg-type]
    assert scores.tolist() == pytest.approx([4 / 7])


def test_rouge_is_that_of_the_library() -> None:
    direct = rouge_scorer.RougeScorer(["rougeL"])
    pairs = zip(TEXTS, REFERENCES, strict=True)
    expected = [direct.score(reference, text)["rougeL"].fmeasure for text, reference in pairs]
    assert rouge_l(TEXTS, REFERENCES, "rouge") == pytest.approx(expected)


def test_chinese_has_no_token_for_rouges_own_tokenizer() -> None:
    texts, references = CHINESE
    assert np.isnan(rouge_l(texts, references, "rouge")).all()
    # all 6 characters of the text, in order, of the 7 of the reference: 12/13
    assert rouge_l(texts, references, "characters").tolist() == pytest.approx([12 / 13, 12 / 13])


METRICS = (EmbeddingAverage, GreedyMatching)
# "a b" against "a": sums (1, 1) and (1, 0); cosines 1 and 0, then 1
BY_HAND = {EmbeddingAverage: math.sqrt(0.5), GreedyMatching: 0.75}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text("a 1 0\nb 0 1\nA -1 0\n茶 1 1\n")
    return path


def make_evidence_similarity(texts: list[str], references: list[str | None]) -> Evidence:
    ids = np.array([f"q{row}" for row in range(len(texts))], dtype=object)
    responses = Responses(ids, np.array(texts, dtype=object), np.array(references, dtype=object))
    queries, items = make_user_queries(0), make_vocabulary("i", 0)
    return Evidence(queries, items, responses=responses, metric="it")


@pytest.mark.parametrize("kind", METRICS)
def test_values_equal_those_worked_by_hand_similarity(kind: Any, path: Path) -> None:
    evidence = make_evidence_similarity(["a b", "b a x", "", "x", "b"], ["a", "a", "a", "b", None])
    with collect_warnings() as notes:
        measurement = measure_one(kind(vectors=path), evidence)
    assert measurement.units.values[:2] == pytest.approx([BY_HAND[kind]] * 2)
    assert np.isnan(measurement.units.values[2:]).all()
    assert (measurement.n, measurement.undefined) == (2, 3)
    assert notes == [
        "it: 1 of 5 responses have no reference",
        "it: 2 of 10 tokens have no vector",
        "it: 2 of 4 responses have no token with a vector",
    ]


@pytest.mark.parametrize("kind", METRICS)
def test_input_embeddings_of_an_encoder_are_used(kind: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from support.models.small_encoder import write_small_encoder

    folder = str(write_small_encoder(tmp_path / "encoder"))
    metric = kind(encoder=folder)
    assert metric.model_files()
    with collect_warnings():
        measurement = measure_one(metric, make_evidence_similarity(["the soup xyz"], ["bread"]))
    weights = transformers.BertModel.from_pretrained(folder).embeddings.word_embeddings.weight
    soup, the, bread = weights[[5, 12, 6]].detach()  # after five special tokens
    cosine = torch.nn.functional.cosine_similarity
    if kind is EmbeddingAverage:
        expected = cosine(soup + the, bread, dim=0)
    else:
        near = torch.stack([cosine(word, bread, dim=0) for word in (soup, the)])
        expected = (near.mean() + near.max()) / 2
    assert measurement.value == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("kind", METRICS)
def test_settings_that_exclude_each_other_are_refused(kind: Any, path: Path) -> None:
    for settings in ({}, {"vectors": path, "encoder": "bert"}):
        with pytest.raises(Contradiction, match="of a file or of a language model"):
            kind(**settings)
    with pytest.raises(WrongType, match=r"model\.bin") as caught:
        kind(vectors=Path("model.bin"))
    assert caught.value.where == "vectors"
    with pytest.raises(MissingFile):
        kind(encoder="./absent").check(make_evidence_similarity([], []))
