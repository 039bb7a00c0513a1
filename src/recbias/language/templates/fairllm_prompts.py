"""The prompts of FaiRLLM: its sensitive attributes as JSON, and its results as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Gt, MinLen

from recbias.core.dataset.attributes import Attributes
from recbias.core.dataset.dataset import Dataset
from recbias.core.dataset.vocabulary import Vocabulary
from recbias.core.errors import WrongType
from recbias.core.protocols import InputFile
from recbias.core.queries.queries import Queries
from recbias.language.templates.fairllm_files import prompts_of


@dataclass(frozen=True, kw_only=True)
class FaiRLLMPrompts:
    """Ask with the prompts of FaiRLLM: one sentence, with and without a sensitive attribute.

    A prompt carries as labels the ``attribute`` that it names (``religion``; ``neutral`` where it
    names none), the ``value`` as it is written (``a Buddhist``), the ``name`` of the artist or
    director, and the value without its article in a column of the attribute
    (``religion=Buddhist``), which is missing where the prompt names another. A file is one of:

    - **the attributes** (``sst_json.json``: the values of each attribute): every value with every
      name of ``names``, in ``sentence``.
    - **the authors' results** (``.csv`` with ``name``, ``Instruction`` and ``Prompt sensitive
      attr``): the prompts as they were sent. The attribute is the name of the folder that the file
      is in, as the authors save them (``top_20/religion/a Buddhist.csv``).
    - **records** (``.json``: a list of mappings, or a mapping of lists or of mappings): the prompt
      is under ``Instruction``, ``prompt`` or ``instruction`` (with ``input`` behind it); replies
      are left out and any other text is a label.

    Args:
        paths: The files.
        sentence: For the attributes: the prompt, with ``[value]`` and ``[name]``; ``I am [value]
            fan of [name].`` for instance.
        names: For the attributes: a CSV whose column ``name`` or ``Director``, or else its first,
            holds the names.
        n_names: How many of the names are asked, from the first; null for all.

    Raises:
        MissingFile: A file is not there.
        WrongType: ``sentence`` or ``names`` is absent for the attributes, or a slot of it is.
        UnknownColumn: A table has no prompts.
        MalformedLine: A record has no prompt, or two prompts are called alike.

    Source:
        Zhang, Bao, Zhang, Wang, Feng and He, "Is ChatGPT Fair for Recommendation? Evaluating
        Fairness in Large Language Model Recommendation", RecSys 2023;
        github.com/jizhi-zhang/FaiRLLM.
    """

    paths: Annotated[tuple[InputFile, ...], MinLen(1)]
    sentence: str | None = None
    names: InputFile | None = None
    n_names: Annotated[int, Gt(0)] | None = None

    def __post_init__(self) -> None:
        """Refuse a sentence without its slots, before any data is read."""
        for slot in ("[value]", "[name]"):
            if self.sentence is not None and slot not in self.sentence:
                found = f"the sentence has no {slot}"
                remedy = "write it as: I am [value] fan of [name]. What should I watch?"
                raise WrongType(found, where="sentence", remedy=remedy)

    def ask(self, dataset: Dataset | None, rng: np.random.Generator | None) -> Queries:
        """Return the prompts, file by file; nothing of the dataset is used."""
        table = prompts_of(self.paths, self.sentence, (self.names, self.n_names))
        ids = Vocabulary(table.pop("id").to_numpy(dtype=object).copy())
        texts = table.pop("text").to_numpy(dtype=object)
        nobody = np.full(len(ids), -1, dtype=np.int32)
        return Queries(ids, Attributes(ids, table, "query"), nobody, texts, "prompt")
