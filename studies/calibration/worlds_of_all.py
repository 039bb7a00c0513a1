"""Every world, in the order of the table."""

from __future__ import annotations

import demo_vectors
import dial_studies
import exposure_studies
import fairness_studies
import ideal_studies
import label_studies
import list_studies
import log_studies
import prediction_studies
import price_studies
import probable_items
import rating_studies
import reply_studies
import template_studies
import text_studies
import vector_studies

WORLDS = (
    *list_studies.WORLDS,
    *price_studies.WORLDS,
    *exposure_studies.WORLDS,
    *fairness_studies.WORLDS,
    *ideal_studies.WORLDS,
    *dial_studies.WORLDS,
    *probable_items.WORLDS,
    *label_studies.WORLDS,
    *prediction_studies.WORLDS,
    *reply_studies.WORLDS,
    *rating_studies.WORLDS,
    *template_studies.WORLDS,
    *vector_studies.WORLDS,
    *demo_vectors.WORLDS,
    *text_studies.WORLDS,
    *log_studies.WORLDS,
)
