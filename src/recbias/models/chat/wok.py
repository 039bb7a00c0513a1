"""WOK: a chat model recommends titles from the watch history of a user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from annotated_types import Ge, Le

from recbias.core.arrays import Ids
from recbias.core.dataset.split import TrainingData
from recbias.core.errors import UserError, relocate
from recbias.core.outputs.ranked_lists import RankedLists
from recbias.core.outputs.sentences import Responses
from recbias.core.protocols import InputFile, Output
from recbias.core.queries.queries import Queries
from recbias.core.stage_context import record_fact, warn
from recbias.language.chat.client import complete
from recbias.language.chat.requests import ChatReply, ChatRequest
from recbias.language.chat.settings import LanguageModel
from recbias.language.prompts.mitigations import find_mitigation
from recbias.language.prompts.prompt_files import find_prompt
from recbias.language.prompts.recommendation_prompts import RecommendationPrompt, RenderedPrompt
from recbias.language.replies.catalogue_titles import CatalogueTitles
from recbias.language.replies.reply_outcomes import ReplyOutcomes, resolve_replies
from recbias.language.replies.reply_parsing import parse_reply
from recbias.models.chat.titles import ItemTitles
