"""Rubrics: prompts that ask a chat model how likely a text is to have labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count

from recbias.formats.yaml import MarkedValue
from recbias.language.endpoints import Message
from recbias.language.prompts import (
    RecommendationPrompt,
    RequestPrompt,
    SlottedText,
    find_in,
    load_folder,
    load_packaged,
    load_request_prompts,
    parse_template,
    read_head,
)

_SLOTS = {slot: slot for slot in ("text", "marker", "kinds", "answer")}  # the slots of a template


@dataclass(frozen=True)
class Rubric:
    """A prompt with slots for a text and the kinds of label.

    Args:
        name: The packaged name or the file.
        about: What it asks for, in one sentence.
        source: Where it comes from.
        words: The words by which a reply may name each kind, in lower case.
        lines: The lines of the template.
    """

    name: str
    about: str
    source: str
    words: Mapping[str, tuple[str, ...]]
    lines: tuple[SlottedText, ...]

    @property
    def content(self) -> str:
        """The template."""
        return "\n".join(line.show_slots() for line in self.lines)

    def render(self, text: str, kinds: Sequence[str]) -> Message:
        """Return the message about one text, which stands between two lines with its marker.

        The marker is made from the text and does not occur in it, so that no text can end itself;
        braces in the text are text.

        Args:
            text: The text.
            kinds: The kinds of label to ask for.
        """
        marker = _make_marker(text)
        values = {
            "text": f"{marker}\n{text}\n{marker}",
            "marker": marker,
            "kinds": ", ".join(kinds),
            "answer": "\n".join(f"{kind}: <probability>" for kind in kinds),
        }
        return Message("user", "\n".join(line.fill(values) for line in self.lines))


def _make_marker(text: str) -> str:
    """Return a line that does not occur in a text; the same one for the same text.

    >>> _make_marker("A girl and her horse.")
    '=== ac5f3f2238af ==='
    """
    digests = (sha256(f"{n}{text}".encode("utf-8", "replace")).hexdigest() for n in count())
    return next(f"=== {digest[:12]} ===" for digest in digests if digest[:12] not in text)


def load_rubrics() -> dict[str, Rubric]:
    """Return the packaged rubrics by name."""
    return load_folder("prompts/rubrics", _parse)


def load_all_prompts() -> Mapping[str, RecommendationPrompt | RequestPrompt | Rubric]:
    """Return all packaged prompts by name: of histories, of requests, and rubrics."""
    return {**load_packaged(), **load_request_prompts(), **load_rubrics()}


def find_rubric(name: str) -> Rubric:
    """Return the rubric of a file, or a packaged one.

    Raises:
        UnknownName: The name is neither.
        MalformedLine: The file has no kinds or no template, or the template lacks the text.
    """
    return find_in(load_rubrics(), name, _parse, "rubric")


def _parse(tree: MarkedValue, name: str) -> Rubric:
    about, source, template = read_head(tree, "kinds")
    top = tree.mapping("the file")
    if "kinds" not in top:
        raise tree.fault("there are no kinds", remedy="write kinds: {age: [age, old, young]}")
    lines = parse_template(template, _SLOTS)
    n_texts = [slot for line in lines for slot in line.slots].count("text")
    if n_texts != 1:
        message = f"the template has the slot {{text}} {n_texts} times"
        raise template.fault(message, remedy="write {text} once, on a line of its own")
    return Rubric(name, about, source, _parse_kinds(top["kinds"]), lines)


def _parse_kinds(marked: MarkedValue) -> dict[str, tuple[str, ...]]:
    """Return the words of each kind; its name is one of them."""
    kinds = marked.mapping("kinds")
    if not kinds:
        raise marked.fault("there are no kinds", remedy="write kinds: {age: [age, old, young]}")
    words: dict[str, tuple[str, ...]] = {}
    for kind, entries in kinds.items():
        listed = (entry.text("a word") for entry in entries.entries(f"the words of {kind}"))
        spellings = (kind, kind.replace("_", " "), *listed)
        words[kind] = tuple(dict.fromkeys(word.strip().casefold() for word in spellings))
    return words
