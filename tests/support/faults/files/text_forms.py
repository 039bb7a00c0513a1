"""Forms of prompts, words, terms, vectors of words, posts, sheets, cards, and specs."""

from __future__ import annotations

import json
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml

from recbias.config.source import read_spec
from recbias.data.sentences import RedditBias
from recbias.formats.ratings import KEY_FILE, SheetItem, read_sheets, write_sheets
from recbias.formats.vectors import read_word_vectors
from recbias.language.corpora import read_posts, read_rows
from recbias.language.fairllm import FaiRLLMPrompts
from recbias.language.groups import load_group_words
from recbias.language.prompts import find_prompt, find_request_prompt
from recbias.language.rubrics import find_rubric
from recbias.language.templates import Templates
from recbias.language.terms import load_terms
from support.faults.files.contents import pack, to_archive, to_file, to_lines
from support.faults.files.dataset_forms import _make_redditbias
from support.faults.files.forms import TEXT_SUFFIXES, Form, Read, make_form, make_table_forms

RNG = np.random.default_rng(0)
WORDS = ("she", "he", "they")
NUMBERS = np.arange(9, dtype=np.float32).reshape(3, 3) + 1
GROUPS = {"kinds": {"gender": {"man": ["he", "him"], "woman": ["she", "her"]}}}
TERMS = {
    "about": "Terms.",
    "categories": {
        "gender": {
            "groups": ["female", "male"],
            "targets": [["she", "he"], ["her", "his"]],
            "attributes": [["weak", None]],
        }
    },
}
PROMPT = {
    "about": "Asks.",
    "source": "Me.",
    "template": "Heard: {history}\n- Write {n_items}",
    "history": {"order": "newest_first", "max_items": 2, "item": "* {title}, {year}"},
    "mitigations": {"niche": "Prefer rare songs."},
}
REQUEST = {"about": "Asks.", "source": "Me.", "template": "{request}\nGive {n_items}."}
RUBRIC = {
    "about": "Asks.",
    "source": "Me.",
    "kinds": {"age": ["old", "young"]},
    "template": "{marker}\n{text}\n{marker}\n{kinds}\n{answer}",
}
TEMPLATES = {
    "about": "Asks.",
    "source": "Me.",
    "words": {
        "name": [{"gender": "female", "words": ["Ann"]}, {"gender": "male", "words": ["Bob"]}]
    },
    "templates": {"seat": ["Seat [name] now"]},
}
SPEC = {
    "name": "a",
    "dataset": {"name": "demo", "n_users": 80, "n_items": 60},
    "k": 5,
    "models": ["Random"],
    "metrics": ["ItemCoverage"],
}


def to_yaml(tree: object) -> bytes:
    return yaml.safe_dump(tree, sort_keys=False).encode()


def read_one(read: Callable[[Path], object], name: str) -> Read:
    return lambda folder: read(folder / name)


def list_text_forms() -> list[Form]:
    """Return the forms of texts, words and trees."""
    trees: list[tuple[str, str, bytes, Callable[[Path], object]]] = [
        ("detectors/causal_lm.groups", "g.yaml", to_yaml(GROUPS), load_group_words),
        ("detectors/masked_lm.groups", "g.json", json.dumps(GROUPS).encode(), load_group_words),
        ("detectors/llm_judge.rubric", "r.yaml", to_yaml(RUBRIC), lambda p: find_rubric(str(p))),
        ("models/language_model.terms", "t.yaml", to_yaml(TERMS), load_terms),
        ("models/WOK.prompt", "p.yaml", to_yaml(PROMPT), lambda p: find_prompt(str(p))),
        (
            "models/LMRerank.prompt",
            "p.json",
            json.dumps(PROMPT).encode(),
            lambda p: find_prompt(str(p)),
        ),
        (
            "models/ChatRecommender.prompt",
            "q.yaml",
            to_yaml(REQUEST),
            lambda p: find_request_prompt(str(p)),
        ),
        (
            "queries/templates.templates",
            "t.yaml",
            to_yaml(TEMPLATES),
            lambda p: Templates(templates=p).ask(None, None),
        ),
        ("specs/spec", "s.yaml", to_yaml(SPEC), read_spec),
    ]
    forms = [
        make_form(name, {file: data}, read_one(read, file)) for name, file, data, read in trees
    ]
    forms.append(
        make_form(
            "specs/spec.extends",
            {"base.yaml": to_yaml(SPEC), "s.yaml": b"extends: base.yaml\nk: 3\n"},
            lambda folder: read_spec(folder / "s.yaml"),
        )
    )
    authors = {"names": ["Seat {} now"]}
    words = {"names.json": json.dumps({"female": ["Ann"], "male": ["Bob"]}).encode()}
    sources = {"t.json": json.dumps(authors).encode(), **words}
    for setting, first in (("templates", "t.json"), ("words", "names.json")):
        forms.append(
            make_form(
                f"queries/templates.{setting}",
                {first: sources[first], **sources},
                lambda folder: Templates(
                    templates=folder / "t.json", words=(folder / "names.json",)
                ).ask(None, None),
            )
        )
    return [*forms, *_list_fairllm_forms(), *_list_vector_forms(), *_list_command_forms()]


def _list_fairllm_forms() -> list[Form]:
    attributes = {"a.json": json.dumps({"age": ["old", "young"], "neutral": [""]}).encode()}
    names = {"n.csv": to_lines({"name": ("Ann", "Bob, jr")})}
    results = {
        "gender.csv": to_lines({"Instruction": ("I am she", "I am he"), "name": ("a", "b")})
    }
    records = {"r.json": json.dumps([{"prompt": "a", "age": "old"}, {"prompt": "b"}]).encode()}

    def fill(folder: Path) -> object:
        sentence = "I am [value] fan of [name]."
        paths = (folder / "a.json",)
        source = FaiRLLMPrompts(paths=paths, sentence=sentence, names=folder / "n.csv")
        return source.ask(None, None)

    def ask(name: str) -> Read:
        return lambda folder: FaiRLLMPrompts(paths=(folder / name,)).ask(None, None)

    return [
        make_form("queries/fairllm.paths", {**attributes, **names}, fill),
        make_form("queries/fairllm.names", {**names, **attributes}, fill),
        make_form("queries/fairllm.paths", results, ask("gender.csv")),
        make_form("queries/fairllm.paths", records, ask("r.json")),
    ]


def _list_vector_forms() -> list[Form]:
    from safetensors.numpy import save

    rows = zip(WORDS, NUMBERS.tolist(), strict=True)
    text = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows).encode()
    files = {
        "v.txt": text,
        "v.vec": b"3 3\n" + text,
        "v.txt.gz": pack(text),
        "v.npz": to_archive(words=np.array(WORDS), vectors=NUMBERS),
        "v.safetensors": save({"vectors": NUMBERS}, {"words": "\n".join(WORDS)}),
    }
    kinds = {"v.npz": "archive", "v.safetensors": "binary"}
    metrics = ("embedding_average", "greedy_matching")
    return [
        make_form(
            f"metrics/{metric}.vectors",
            {name: data},
            lambda folder, name=name: read_word_vectors(folder / name, WORDS),  # type: ignore[misc]
            kinds.get(name, " "),
        )
        for metric in metrics
        for name, data in files.items()
        if metric == metrics[0] or name == "v.txt"
    ]


def _list_command_forms() -> list[Form]:
    sentences = {"id": ("a", "b"), "text": ("she runs", "he, runs"), "group": ("F", "M")}
    forms = make_table_forms(
        "command/sentences", sentences, lambda path, _: read_rows(path, "group"), TEXT_SUFFIXES
    )
    posts = {
        "posts.txt": b"a post\nanother\n",
        **{
            f"posts{suffix}": to_file({"text": ("a post", "another, b")}, suffix)
            for suffix in TEXT_SUFFIXES
        },
    }
    forms += [
        make_form(
            "command/sentences collect",
            {name: data},
            lambda folder, name=name: deque(read_posts(folder / name), 0),  # type: ignore[misc]
        )
        for name, data in posts.items()
    ]
    train = {"train.txt": b"to train on\ntwo\n"}
    train |= {name: data for (name, _), data in _make_redditbias().items()}
    forms.append(
        make_form(
            "datasets/redditbias.train",
            train,
            lambda folder: RedditBias(dimension="religion1", train=folder / "train.txt").load(
                folder, RNG
            ),
        )
    )
    sheets = _make_sheets()

    def read(folder: Path) -> object:
        return read_sheets([folder / "rater-1.csv"], folder / KEY_FILE, "good")

    for name in sheets:
        forms.append(make_form("command/human import", {name: sheets[name], **sheets}, read))
    return forms


def _make_sheets() -> dict[str, bytes]:
    contents = [SheetItem({"text": f"Text {n}"}, {"id": str(n)}) for n in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        write_sheets(Path(folder), contents, "good", 1, RNG)
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    files = {name: data.replace(b"\r\n", b"\n") for name, data in files.items()}
    return {name: files[name] for name in ("rater-1.csv", KEY_FILE)}
