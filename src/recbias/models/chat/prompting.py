"""The prompt and the mitigation that a chat model is set to, and what the prompts leave out."""

from __future__ import annotations

from collections.abc import Sequence

from recbias.core.errors import UserError
from recbias.core.stage_context import record_fact, warn
from recbias.language.prompts.mitigations import find_mitigation
from recbias.language.prompts.prompt_files import find_prompt
from recbias.language.prompts.recommendation_prompts import RecommendationPrompt, RenderedPrompt


def load_prompt(name: str, mitigation: str | None) -> tuple[RecommendationPrompt, str | None]:
    """Return a prompt, and the sentence of a mitigation.

    Args:
        name: A packaged prompt, or a file.
        mitigation: The name of a mitigation, or a sentence; None for the plain prompt.

    Raises:
        UserError: There is no such prompt or mitigation, or its file is malformed.
    """
    try:
        prompt = find_prompt(name)
    except UserError as error:
        raise error.locate_at("prompt") from error
    return prompt, None if mitigation is None else find_mitigation(mitigation, prompt).sentence


def report_histories(prompt: RecommendationPrompt, prompts: Sequence[RenderedPrompt]) -> None:
    """Record the order of the histories, and warn of items that are not in the prompts."""
    record_fact("history_order", prompt.history.order)
    n_cut = sum(rendered.n_cut for rendered in prompts)
    if n_cut:
        n_prompts = sum(rendered.n_cut > 0 for rendered in prompts)
        record_fact("history_items_cut", n_cut)
        warn(f"{n_cut:,} oldest items of {n_prompts:,} histories are not in the prompts")
