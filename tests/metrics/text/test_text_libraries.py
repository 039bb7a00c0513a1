from __future__ import annotations

import math

import numpy as np
import pytest

from recbias.metrics.text import compute_bleu, count_bleu_statistics, rouge_l

sacrebleu = pytest.importorskip("sacrebleu")
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
