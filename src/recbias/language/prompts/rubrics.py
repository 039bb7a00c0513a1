"""Rubrics: prompts that ask a chat model how likely a text is to have labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import as_file, files
from itertools import count
from pathlib import Path

from recbias.core.errors import UnknownName
from recbias.core.input_files import has_file
from recbias.core.suggestions import suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.chat.requests import Message
from recbias.language.prompts.prompt_slots import SlottedText, parse_slots

SLOTS = {slot: slot for slot in ("text", "marker", "kinds", "answer")}
"""The slots of a template."""


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
        marker = make_marker(text)
        values = {
            "text": f"{marker}\n{text}\n{marker}",
            "marker": marker,
            "kinds": ", ".join(kinds),
            "answer": "\n".join(f"{kind}: <probability>" for kind in kinds),
        }
        return Message("user", "\n".join(line.fill(values) for line in self.lines))


def make_marker(text: str) -> str:
    """Return a line that does not occur in a text; the same one for the same text.

    >>> make_marker("A girl and her horse.")
    '=== ac5f3f2238af ==='
    """
    digests = (sha256(f"{n}{text}".encode("utf-8", "replace")).hexdigest() for n in count())
    return next(f"=== {digest[:12]} ===" for digest in digests if digest[:12] not in text)


def load_rubrics() -> dict[str, Rubric]:
    """Return the packaged rubrics by name."""
    folder = files("recbias.language.prompts").joinpath("packaged").joinpath("rubrics")
    with as_file(folder) as path:
        return {
            file.stem: _parse(read_marked(file), file.stem) for file in sorted(path.glob("*.yaml"))
        }


def find_rubric(name: str) -> Rubric:
    """Return the rubric of a file, or a packaged one.

    Raises:
        UnknownName: The name is neither.
        MalformedLine: The file has no kinds or no template, or the template lacks the text.
    """
    packaged = load_rubrics()
    if name in packaged:
        return packaged[name]
    if has_file(Path(name)):
        return _parse(read_marked(Path(name)), name)
    message = f"{name!r} is neither a packaged rubric nor a file"
    raise UnknownName(message, where="rubric", remedy=suggest(name, packaged))


def _parse(tree: MarkedValue, name: str) -> Rubric:
    top = tree.mapping("the file", ("about", "source", "kinds", "template"))
    if "template" not in top:
        raise tree.fault("there is no template", remedy="write template: |- and the text below it")
    if "kinds" not in top:
        raise tree.fault("there are no kinds", remedy="write kinds: {age: [age, old, young]}")
    about, source = (top[key].text(key) if key in top else "" for key in ("about", "source"))
    return Rubric(
        name, about, source, _parse_kinds(top["kinds"]), _parse_template(top["template"])
    )


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


def _parse_template(marked: MarkedValue) -> tuple[SlottedText, ...]:
    lines = tuple(
        parse_slots(line, marked, SLOTS, f"line {number} of the template")
        for number, line in enumerate(marked.text("the template").splitlines(), 1)
    )
    n_texts = [slot for line in lines for slot in line.slots].count("text")
    if n_texts != 1:
        message = f"the template has the slot {{text}} {n_texts} times"
        raise marked.fault(message, remedy="write {text} once, on a line of its own")
    return lines
