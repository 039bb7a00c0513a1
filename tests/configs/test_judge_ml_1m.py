"""The judge over descriptions of MovieLens-1M, by a server that rates words."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

import recbias
from support.chat.chat_server import serve_chat
from support.chat.judges import judge

CHILDREN = Path(__file__).parents[2] / "configs" / "papers" / "children"
WORDS = {"gender": ("wife", "girlfriend", "mother"), "race": ("tribe", "slave")}


def rate(text: str) -> str:
    """Rate a kind 0.9 if one of its words is in the text, religion if ``church`` is."""
    words = WORDS | {"religion": ("church", "priest")}
    return "\n".join(
        f"{kind}: {0.9 if any(word in text.lower() for word in listed) else 0.05}"
        for kind, listed in words.items()
    )


@pytest.mark.real_data
@pytest.mark.slow
def test_every_description_is_judged_once_and_compared(real_data: Path, tmp_path: Path) -> None:
    spec = yaml.safe_load((CHILDREN / "judge-ml-1m.yaml").read_text(encoding="utf-8"))
    spec["extends"] = str(CHILDREN / spec["extends"])
    filters = [{"name": "threshold", "at_least": 4}, {"name": "k_core", "k": 100}]
    spec["dataset"] |= {"name": "ml-1m", "filters": filters}  # the most popular films, for speed
    spec |= {"models": ["Random", "MostPop"], "report": {**spec["report"], "formats": ["csv"]}}
    with serve_chat(judge(rate)) as server:
        spec["labels"][0]["llm"] |= {"base_url": server.base_url, "model": "words"}
        run = recbias.run(spec, out=tmp_path, data=real_data)
        n_sent = len(server.payloads)
    lines = (run.folder / "label_replies.jsonl").read_text(encoding="utf-8").splitlines()
    labels = pd.DataFrame([json.loads(line)["label"] for line in lines])
    assert n_sent == len(labels) > 100
    values = run.metrics[run.metrics["model"] == "Random"].set_index("metric")["value"]
    exposure = [name for name in values.index if name.startswith("REC-ST")]
    for name, kind in zip(exposure, labels, strict=True):
        # Lists of ten in random order: the share of labelled films, within 4 standard errors. The
        # weights of the ranks are those of 10 / (1 + 3/11) = 7.9 equal ones.
        share, n_lists = labels[kind].mean(), run.manifest["queries"][0]["asked"]
        assert abs(values[name] - share) < 4 * (share * (1 - share) / n_lists / 7.9) ** 0.5
    reference = pd.read_csv(run.folder / "reference.csv")
    assert set(reference["table"]) == {"children/a13", "children/a15", "children/a17"}
    assert {"HIT_BAD_Gender", "MRR_BAD_Race", "REC-ST_Religion"} < set(reference["metric"])
    assert len(reference) == 2 * 9
    assert set(reference["system"]) == {"Random", "MostPop"}
