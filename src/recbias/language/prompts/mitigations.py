"""Mitigations of bias by prompt, and those of LMRec, by name."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files

from recbias.core.errors import OutOfRange, UnknownName
from recbias.core.printable import make_printable
from recbias.core.suggestions import normalize_name, suggest
from recbias.formats.yaml import MarkedValue, read_marked
from recbias.language.prompts.recommendation_prompts import RecommendationPrompt

MAX_SENTENCE_LENGTH = 2000
"""The longest sentence of a mitigation in characters."""

OWN = "own"
"""The name of a mitigation that is a sentence of the user."""


@dataclass(frozen=True)
class Mitigation:
    """A mitigation.

    Args:
        name: Its name.
        about: What it does, in one sentence.
        source: Where it comes from.
        sentence: What is added to a prompt; blank if it is a setting of an experiment.
        setting: The setting of an experiment; blank if it is added to a prompt.
    """

    name: str
    about: str
    source: str
    sentence: str = ""
    setting: str = ""

    @property
    def content(self) -> str:
        """What is added to a prompt, or set in an experiment."""
        return self.sentence or self.setting


def load_mitigations() -> dict[str, Mitigation]:
    """Return the packaged mitigations by name."""
    with as_file(files("recbias.language.prompts").joinpath("mitigations.yaml")) as path:
        entries = read_marked(path).entries("the mitigations")
    mitigations = [_parse_mitigation(entry) for entry in entries]
    return {mitigation.name: mitigation for mitigation in mitigations}


def _parse_mitigation(entry: MarkedValue) -> Mitigation:
    settings = entry.mapping("a mitigation", Mitigation.__dataclass_fields__)
    return Mitigation(**{key: marked.text(key) for key, marked in settings.items()})


def find_mitigation(text: str, prompt: RecommendationPrompt) -> Mitigation:
    """Return the mitigation of a name, or a user's own sentence.

    Text of several words is a sentence. A name is looked up in the file of the prompt first, then
    among the packaged mitigations, so that the file of a paper brings the paper's own sentences.

    Args:
        text: The name or the sentence.
        prompt: The prompt that it is added to.

    Raises:
        UnknownName: No mitigation has the name, or it is not one that a prompt can hold.
        OutOfRange: The sentence is too long.
    """
    if len(text.split()) > 1:
        return Mitigation(OWN, "A sentence of the user.", "", _make_sentence(text))
    name = normalize_name(text)
    for spelling, sentence in prompt.mitigations.items():
        if normalize_name(spelling) == name:
            return Mitigation(spelling, "", prompt.source, _make_sentence(sentence))
    packaged = load_mitigations()
    mitigation = next((packaged[key] for key in packaged if normalize_name(key) == name), None)
    if mitigation is None:
        names = [*prompt.mitigations, *(key for key in packaged if packaged[key].sentence)]
        remedy = f"{suggest(text, dict.fromkeys(names))}; or write a sentence"
        raise UnknownName(f"no mitigation is called {text!r}", where="mitigation", remedy=remedy)
    if not mitigation.sentence:
        message = f"{mitigation.name} is not a mitigation by prompt"
        raise UnknownName(message, where="mitigation", remedy=f"set {mitigation.setting}")
    return mitigation


def _make_sentence(text: str) -> str:
    """Return a sentence on one line."""
    if len(text) > MAX_SENTENCE_LENGTH:
        message = f"the sentence is longer than {MAX_SENTENCE_LENGTH:,} characters"
        raise OutOfRange(message, where="mitigation", remedy="shorten it")
    return make_printable(" ".join(text.split()), None)
