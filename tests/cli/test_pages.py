from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from recbias.cli.pages import default, entries, page, reflowed, sections
from recbias.config.describe import Parameter
from recbias.registry import REGISTRIES

NAMES = [(kind, name) for kind, registry in REGISTRIES.items() for name in registry.table]


@dataclass(frozen=True, kw_only=True)
class Told:
    """Count the ``stars`` of each list.

        stars = Σ s

    A list: it may be

    - long, over
      two lines;
    - short.

    Args:
        k: How many.

    Raises:
        NothingLeft: There are none,
            not one.

    >>> 1 + 1
    2

    Undefined without stars.

    Source:
        A paper, 2001.
    """

    direction: ClassVar[str] = "lower"
    k: int = 3


def test_a_docstring_is_taken_apart_into_its_sections() -> None:
    found = sections(Told)
    assert set(found) == {"", "Args", "Raises", "Example", "Source"}
    assert found["Args"] == "k: How many."
    assert found["Raises"] == "NothingLeft: There are none,\n    not one."
    assert found["Example"] == ">>> 1 + 1\n2"
    assert found["Source"] == "A paper, 2001."
    assert "    stars = Σ s" in found[""].splitlines()
    assert "Undefined without stars." in found[""]
    assert "A list: it may be" in found[""]


def test_a_class_without_a_docstring_has_no_sections() -> None:
    class Bare: ...

    assert sections(Bare) == {}


def test_text_is_wrapped_block_by_block() -> None:
    assert reflowed(sections(Told)[""], 24).splitlines() == [
        "Count the `stars` of",
        "each list.",
        "",
        "    stars = Σ s",
        "",
        "A list: it may be",
        "",
        "- long, over two lines;",
        "- short.",
        "",
        "Undefined without stars.",
    ]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Parameter("k", "a number", "3", "", "", needed=False), "3 by default"),
        (Parameter("k", "text", "", "", "", needed=False), "(empty) by default"),
        (Parameter("k", "text", "", "", "", needed=True), "must be given"),
    ],
)
def test_a_default_in_words(row: Parameter, words: str) -> None:
    assert default(row) == words


@pytest.mark.parametrize(("kind", "name"), NAMES, ids=[f"{kind}-{name}" for kind, name in NAMES])
def test_nothing_of_a_docstring_is_lost(kind: str, name: str) -> None:
    said = page(kind, name)
    whole = sections(REGISTRIES[kind].load(name))
    assert set(whole) <= {"", "Args", "Raises", "Range", "Example", "Source"}
    assert said.summary in " ".join(said.body.split())
    assert [word for word, _ in entries(said.errors) if not word.isidentifier()] == []
    assert len(entries(whole.get("Args", ""))) == len(said.parameters)


@pytest.mark.parametrize(
    ("name", "met"),
    [
        ("popularity_lift", "no yes no no yes"),
        ("log_popularity_difference", "yes " * 5),
        ("HR", ""),
    ],
)
def test_the_desiderata_of_a_measure_of_popularity_bias_are_facts(name: str, met: str) -> None:
    facts = page("metrics", name).facts
    said = {fact: what for fact, what in facts.items() if fact.startswith("Desideratum")}
    assert " ".join(said.values()) == met.strip()
    if said:
        assert list(said)[2] == "Desideratum 3 (anti-symmetric)"
