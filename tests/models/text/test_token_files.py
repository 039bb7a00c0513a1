from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recbias.core.context import stage_context
from recbias.language.local_models import load_tokenizer
from recbias.language.model_files import Source
from recbias.models import text as token_files
from recbias.models.text import tokenize_texts
from support.models.small_encoder import write_small_encoder

TEXTS = np.array(["the soup was good", "", "soup " * 50, "[MASK] was שלום 🍜"], dtype=object)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_tokenizer(Source(write_small_encoder(tmp_path_factory.mktemp("encoder"))))


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_tokens_equal_those_of_the_tokenizer(
    tokenizer: Any, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_files, "CHUNK", chunk)
    with tokenize_texts(TEXTS, tokenizer, 12) as tokens:
        assert len(tokens) == 4
        assert tokens.lengths.tolist() == [6, 2, 12, 6]
        ids, mask = tokens.pad_rows(np.array([3, 1]), 0)
    expected = [tokenizer(text)["input_ids"] for text in TEXTS[[3, 1]]]
    assert ids[0].tolist() == [*expected[0], 0, 0]
    assert ids[1].tolist() == [*expected[1], *[0] * 6]
    assert mask.tolist() == [[True] * 6 + [False] * 2, [True] * 2 + [False] * 6]


def test_texts_are_tokenized_once_and_memory_mapped(tokenizer: Any, tmp_path: Path) -> None:
    with stage_context(scratch_folder=tmp_path):
        for length in (12, 12, 8):
            with tokenize_texts(TEXTS, tokenizer, length) as tokens:
                assert not tokens.values.flags.writeable
    assert len(list(tmp_path.iterdir())) == 2
