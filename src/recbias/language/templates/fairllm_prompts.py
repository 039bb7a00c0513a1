"""The prompts of FaiRLLM, from its attributes, its results, or records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Gt, Le, MinLen

from recbias.core.dataset.dataset import Dataset
from recbias.core.errors import NothingLeft, WrongType
from recbias.core.protocols import InputFile
from recbias.core.queries.queries import Queries
from recbias.language.templates.fairllm_files import read_prompts
from recbias.language.templates.template_sets import NEUTRAL, add_samples


@dataclass(frozen=True, kw_only=True)
class FaiRLLMPrompts:
    """Query with the prompts of FaiRLLM: one sentence, with and without a sensitive attribute.

    The labels of a prompt are the ``attribute`` that it mentions (``religion``; ``neutral`` if it
    mentions none), the ``value`` as written (``a Buddhist``), the ``name`` of the artist or
    director, and, in a column named after the attribute, the value without its article
    (``religion=Buddhist``), which is missing in prompts with another attribute. ``neutral`` is 1
    for neutral prompts and 0 for all others. A file contains one of:

    - **the attributes** (``sst_json.json``: the values of each attribute). The prompts are
      ``sentence`` with every value and every name of ``names``.
    - **the authors' results** (``.csv`` with ``name``, ``Instruction`` and ``Prompt sensitive
      attr``). The prompts are those sent to the model. The attribute is the name of the folder of
      the file, as the authors save them (``top_20/religion/a Buddhist.csv``).
    - **records** (``.json``: a list of mappings, or a mapping of lists or of mappings). The prompt
      is under ``prompt``, ``text``, ``input`` or ``instruction`` (followed by ``input``); replies
      are ignored, and any other text is a label.

    Args:
        paths: The files.
        sentence: For the attributes: the prompt, with ``[value]`` and ``[name]``, for example
            ``I am [value] fan of [name].``
        names: For the attributes: a CSV file with the names in the column ``name`` or
            ``Director``, or else in its first column.
        n_names: The number of names that are used, from the first; null for all.
        control_samples: How many more times each neutral prompt is asked, as the control of
            ``identity_effect``; the label ``sample`` of these prompts is 1, 2, ...

    Raises:
        MissingFile: A file does not exist.
        WrongType: ``sentence`` or ``names`` is missing for the attributes, or the sentence lacks
            ``[value]`` or ``[name]``.
        UnknownColumn: A table has no prompts.
        MalformedLine: A record has no prompt, or two prompts have the same identifier.
        NothingLeft: There are control samples, but no neutral prompt.

    Source:
        Zhang, Bao, Zhang, Wang, Feng and He, "Is ChatGPT Fair for Recommendation? Evaluating
        Fairness in Large Language Model Recommendation", RecSys 2023;
        github.com/jizhi-zhang/FaiRLLM.
    """

    reads_folder_names: ClassVar[bool] = True

    paths: Annotated[tuple[InputFile, ...], MinLen(1)]
    sentence: str | None = None
    names: InputFile | None = None
    n_names: Annotated[int, Gt(0)] | None = None
    control_samples: Annotated[int, Ge(0), Le(100)] = 0

    def __post_init__(self) -> None:
        """Refuse a sentence without its slots before any data is read."""
        for slot in ("[value]", "[name]"):
            if self.sentence is not None and slot not in self.sentence:
                message = f"the sentence has no {slot}"
                remedy = "write it as: I am [value] fan of [name]. What should I watch?"
                raise WrongType(message, where="sentence", remedy=remedy)

    def ask(self, dataset: Dataset | None, rng: np.random.Generator | None) -> Queries:
        """Return the prompts, file by file; the dataset is not used."""
        table = read_prompts(self.paths, self.sentence, self.names, self.n_names)
        if self.control_samples and not (NEUTRAL in table and (table[NEUTRAL] == 1).any()):
            remedy = 'add "neutral": [""] to the attributes, or the file neutral.csv'
            message = "there are no neutral prompts to sample again"
            raise NothingLeft(message, where="control_samples", remedy=remedy)
        return Queries.of_prompts(add_samples(table, self.control_samples))
