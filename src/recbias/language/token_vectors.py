"""The input embeddings of the tokens of texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recbias.core.arrays import AnyArray
from recbias.language.backends import load_encoder, load_tokenizer
from recbias.language.model_folders import find_model


def embed_tokens(
    name: str, revision: str | None, texts: Sequence[str]
) -> tuple[list[list[int]], AnyArray]:
    """Return the tokens of texts as rows in a table of vectors, and the table.

    The vectors are those by which the model represents a token before its first layer, without
    position or context, ``float32 (n, d)``. Special tokens, also that of unknown words, have none:
    their row is -1.

    Args:
        name: A model folder, an installed package that contains one, or a model of the hub.
        revision: A commit, tag or branch of the hub; None for its main branch.
        texts: The texts.

    Raises:
        MissingFile: The model is not found or cannot be read.
    """
    source = find_model(name, revision)
    tokenizer = load_tokenizer(source)
    encoded = [
        tokenizer(text, add_special_tokens=False, verbose=False).input_ids for text in texts
    ]
    used = sorted({token for tokens in encoded for token in tokens} - {*tokenizer.all_special_ids})
    weights = load_encoder(source).get_input_embeddings().weight.detach()
    rows = {token: row for row, token in enumerate(used)}
    codes = [[rows.get(token, -1) for token in tokens] for tokens in encoded]
    return codes, weights[used].numpy().astype(np.float32)
