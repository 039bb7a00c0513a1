"""Attention masks by which many texts share one pass of a causal model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recbias.core.arrays import AnyArray, BoolArray
from recbias.core.errors import Contradiction

FULL = "full_attention"
SLIDING = "sliding_attention"

REMEDY = "choose a model with full or sliding attention, such as Llama, Qwen, Gemma or GPT-2"


@dataclass(frozen=True)
class AttentionLayers:
    """What the attention layers of a model see of the tokens before.

    Args:
        kinds: The kinds of layers: ``full_attention`` sees all tokens, ``sliding_attention`` those
            of a window.
        window: The number of tokens in the window, the current one included.
    """

    kinds: frozenset[str]
    window: int

    @classmethod
    def from_config(cls, config: Any) -> AttentionLayers:
        """Return the layers of a model.

        Raises:
            Contradiction: A layer is of another kind: a recurrent state, or chunks.
        """
        text = config.get_text_config(decoder=True)
        window = getattr(text, "sliding_window", None)
        kinds = frozenset(getattr(text, "layer_types", None) or [SLIDING if window else FULL])
        others = sorted(kinds - {FULL, SLIDING} | _find_local_layers(text))
        if others:
            message = f"a model with layers of the kind {others[0]} cannot score texts together"
            raise Contradiction(message, where="model", remedy=REMEDY)
        return cls(kinds, window or 0)

    def make_masks(
        self, visible: BoolArray, positions: AnyArray, *, dtype: Any, device: Any
    ) -> Any:
        """Return the mask of new tokens after a context: one, or one for each kind of layer.

        Args:
            visible: Which of the new tokens each of them attends to, ``bool[n, n]``.
            positions: The position of each new token; the first one follows the context.
            dtype: The type of the mask: that of the weights.
            device: The device of the mask.
        """
        n_context = int(positions.min())
        is_visible = np.pad(visible, ((0, 0), (n_context, 0)), constant_values=True)
        all_positions = np.concatenate([np.arange(n_context), positions])
        is_near = positions[:, None] - all_positions < self.window
        kinds = {FULL: is_visible, SLIDING: is_visible & is_near}
        masks = {kind: _to_mask(kinds[kind], dtype, device) for kind in self.kinds}
        return masks if len(masks) > 1 else next(iter(masks.values()))


def _find_local_layers(config: Any) -> set[str]:
    """Return the kinds of layers that GPT-Neo limits to a window by the order of the tokens."""
    return set(getattr(config, "attention_layers", ())) & {"local"}


def _to_mask(is_visible: BoolArray, dtype: Any, device: Any) -> Any:
    """Return what is added to the attention scores, ``(1, 1, n, n_context + n)``."""
    import torch

    mask = torch.zeros(is_visible.shape, dtype=dtype, device=device)
    is_hidden = torch.from_numpy(~is_visible).to(device)
    return mask.masked_fill_(is_hidden, torch.finfo(dtype).min)[None, None]
