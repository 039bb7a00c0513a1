"""Labels by a chat model that reads a text of each item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Ge, Interval, MinLen

from recbias.core.arrays import FloatArray
from recbias.core.dataset.attributes import Attributes
from recbias.core.errors import NothingLeft, OutOfRange, UnknownColumn, UnknownName, UserError
from recbias.core.models.planned_requests import PlannedRequest
from recbias.core.protocols import InputFile
from recbias.core.stage_context import record_fact, warn
from recbias.core.suggestions import suggest
from recbias.detectors.judgements import (
    ItemTexts,
    cut_texts,
    mark_labelled,
    read_judgements,
)
from recbias.language.chat.client import complete, plan_requests
from recbias.language.chat.endpoints import LanguageModel
from recbias.language.chat.requests import ChatRequest
from recbias.language.prompts.rubrics import Rubric, find_rubric
from recbias.language.replies.label_json import make_label_schema
from recbias.language.replies.label_reading import Form

TEXT = 1000
"""The number of characters of the text of an item where it is not known."""

_OUTCOMES = {"zero": "labelled 0", "undefined": "given no label"}


@dataclass(frozen=True, kw_only=True)
class LLMJudge:
    """Label items by the probabilities that a chat model states after reading a text of each.

        score = mean of p_s over the samples s that can be read,  label = 1 if score ≥ threshold

    Each text is sent by itself, between two lines with a marker that does not occur in it, so that
    an instruction in a text can change the reply about that item only. Beside the label of each
    kind there is its grade, ``gender_score``. Items without a text, texts that were cut, and
    replies that cannot be read are counted by cause in a warning. Each reply is stored like those
    of models, and asked for once. ``label_replies.jsonl`` of the run has every reply with how it
    was read and the label that follows.

    With several samples, the facts of the stage hold their agreement for each kind: the mean share
    of equal labels, and Krippendorff's alpha of labels and of probabilities. A reply states no
    certainty in a statistical sense: compare the labels with those of people on a sample of the
    items, by ``label_accuracy``, ``cohen_kappa`` and ``krippendorff_alpha``.

    Args:
        from_: The column of texts.
        llm: The chat model: ``{provider, model, base_url, temperature, max_tokens, ...}``.
        rubric: The packaged rubric ``stereotypes``, or a file with ``kinds`` and ``template``.
        kinds: The kinds of the rubric to ask for and to label.
        threshold: The least probability that is labelled 1.
        reading: Replies that are read: ``strict`` for a line ``kind: probability`` for each kind,
            the same as JSON, lines ``Stereotype: label, Probability: probability``, or 0 for none;
            ``lenient`` also for such lines within other text and with other words and numbers.
        samples: How often each text is sent.
        max_chars: The length at which a text is cut at the end of a word; null for no limit.
        unread: The label of an item none of whose replies can be read, because they are prose, a
            refusal, cut off or empty, or none of whose replies states one value of the kind:
            ``zero`` as in the thesis, or ``undefined``.
        missing: The label of an item without a text: ``zero`` or ``undefined``.

    Raises:
        UnknownColumn: The items have no such column, or it holds numbers.
        UnknownName: There is no such rubric, or the rubric has no such kind.
        OutOfRange: A kind is named twice.
        MalformedLine: The rubric has no kinds, or its template lacks the slot of the text.
        NothingLeft: No item has a text, or no reply can be read.
        RequestRefused: There is no key, or the server refuses all requests.
        MissingReplies: Replies are missing, and the network may not be used.
        BudgetSpent: The budget does not allow all requests.

    Source:
        The protocol: Al Nahadi, "Exploring children's exposure to stereotypes via recommender
        systems", MSc thesis, TU Delft 2023, section 3.3.3; the words of the rubric are our own.
    """

    libraries: ClassVar[tuple[str, ...]] = ()

    from_: str
    llm: LanguageModel
    rubric: Literal["stereotypes"] | InputFile = "stereotypes"
    kinds: Annotated[tuple[str, ...], MinLen(1)] = ("gender", "race", "religion")
    threshold: Annotated[float, Interval(ge=0, le=1)] = 0.7
    reading: Form = "lenient"
    samples: Annotated[int, Ge(1)] = 1
    max_chars: Annotated[int, Ge(1)] | None = 8000
    unread: Literal["zero", "undefined"] = "zero"
    missing: Literal["zero", "undefined"] = "zero"

    def __post_init__(self) -> None:
        """Refuse an invalid rubric and unknown kinds before any data is read."""
        try:
            words = self.load_rubric().words
        except UserError as error:
            raise error.locate_at("rubric") from error
        for position, kind in enumerate(self.kinds):
            if kind not in words:
                message = f"the rubric has no kind {kind!r}"
                remedy = f"{suggest(kind, words)}: write kinds: [{', '.join(words)}]"
                raise UnknownName(message, where="kinds", remedy=remedy)
            if kind in self.kinds[:position]:
                raise OutOfRange(f"the kind {kind!r} is named twice", where="kinds")

    def model_files(self) -> tuple[Path, ...]:
        """Return the files of a model that runs in the process."""
        return self.llm.list_files()

    def load_rubric(self) -> Rubric:
        """Return the rubric."""
        return find_rubric(str(self.rubric))

    def plan_label_requests(self, items: Attributes) -> list[PlannedRequest]:
        """Return the requests of ``label``, without sending any."""
        return plan_requests(self._build_requests(self._read_texts(items)), self.llm)

    def label(self, items: Attributes, rng: np.random.Generator) -> Mapping[str, FloatArray]:
        """Return the labels and grades of each kind; ``rng`` is unused: the model samples."""
        return self.label_with_replies(items)[0]

    def label_with_replies(
        self, items: Attributes
    ) -> tuple[Mapping[str, FloatArray], pd.DataFrame]:
        """Return the labels and grades of each kind, and a row for each item and sample."""
        texts = self._read_texts(items)
        self._report_texts(texts)
        replies = complete(self._build_requests(texts), self.llm)
        words = self.load_rubric().words
        judged = {kind: words[kind] for kind in self.kinds}
        judgements = read_judgements(replies, judged, self.reading, self.samples)
        judgements.report(self.threshold, unread=_OUTCOMES[self.unread])
        columns: dict[str, FloatArray] = {}
        for kind in self.kinds:
            scores = judgements.scores(kind)
            unread = np.isnan(scores)
            fill = 0.0 if self.unread == "zero" else np.nan
            labels = np.where(unread, fill, mark_labelled(scores, self.threshold))
            columns[kind] = self._spread(labels, texts)
            columns[f"{kind}_score"] = self._spread(np.where(unread, fill, scores), texts)
        return columns, judgements.tabulate(texts, items.ids.ids, self.threshold)

    def _read_texts(self, items: Attributes) -> ItemTexts:
        try:
            column = items.column(self.from_)
        except UnknownColumn as error:
            raise UnknownColumn(error.message, where="from", remedy=error.remedy) from error
        if column.dtype.kind == "f" and column.notna().any():
            message = f"column {self.from_!r} of the items holds numbers, not texts"
            raise UnknownColumn(message, where="from")
        texts = cut_texts(column, self.max_chars)
        if not texts.texts:
            raise NothingLeft(f"no item has a text in {self.from_!r}", where="from")
        return texts

    def _report_texts(self, texts: ItemTexts) -> None:
        n_items, n_missing = texts.codes.size, int(np.count_nonzero(texts.codes < 0))
        n_cut = int(np.count_nonzero(texts.is_cut))
        record_fact("items_without_text", n_missing)
        record_fact("texts_cut", n_cut)
        if n_missing:
            outcome = _OUTCOMES[self.missing]
            warn(f"{n_missing:,} of {n_items:,} items have no {self.from_!r}: {outcome}")
        if n_cut:
            warn(f"{n_cut:,} of {n_items:,} texts are cut to {self.max_chars:,} characters")
        if self.samples > 1 and self.llm.temperature == 0:
            warn(f"{self.samples} samples at temperature 0 differ little: set llm: temperature")

    def _build_requests(self, texts: ItemTexts) -> list[ChatRequest]:
        """Return the requests, all texts of the first sample before those of the second."""
        rubric = self.load_rubric()
        schema = make_label_schema(self.kinds)
        messages = [rubric.render(text, self.kinds) for text in texts.texts]
        return [
            self.llm.build_request([message], sample=sample, response_schema=schema)
            for sample in range(self.samples)
            for message in messages
        ]

    def _spread(self, values: FloatArray, texts: ItemTexts) -> FloatArray:
        """Return the value of the text of each item, ``float64[n_items]``."""
        fill = 0.0 if self.missing == "zero" else np.nan
        return np.append(values, fill)[texts.codes]
