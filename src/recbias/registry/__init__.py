"""The built-in plug-ins by name, as ``name: module:Class``; they are imported when loaded."""

from __future__ import annotations

from collections.abc import Mapping

from recbias.core.registry import Registry
from recbias.registry.families import FamilyRegistry
from recbias.registry.metric_names import METRICS
from recbias.registry.model_names import FAMILIES, MODELS

DATASETS = {
    "demo": "recbias.data.datasets.demo:Demo",
    "tables": "recbias.data.datasets.tables:Tables",
    "ml-100k": "recbias.data.datasets.movielens:MovieLens100K",
    "ml-1m": "recbias.data.datasets.movielens:MovieLens1M",
    "ml-10m": "recbias.data.datasets.movielens:MovieLens10M",
    "ml-20m": "recbias.data.datasets.movielens:MovieLens20M",
    "ml-25m": "recbias.data.datasets.movielens:MovieLens25M",
    "ml-32m": "recbias.data.datasets.movielens:MovieLens32M",
    "ml-latest-small": "recbias.data.datasets.movielens:MovieLensLatestSmall",
    "goodbooks-10k": "recbias.data.datasets.goodbooks:Goodbooks10K",
    "goodreads": "recbias.data.datasets.goodreads:Goodreads",
    "yelp": "recbias.data.datasets.yelp:Yelp",
    "lmrec-release": "recbias.data.datasets.lmrec_release:LMRecRelease",
    "chbias": "recbias.data.sentences.chbias:CHBias",
    "redditbias": "recbias.data.sentences.redditbias:RedditBias",
    "crows_pairs": "recbias.data.sentences.crows_pairs:CrowSPairs",
    "sentence_tables": "recbias.data.sentences.sentence_tables:SentenceTables",
}

FILTERS = {
    "threshold": "recbias.data.filters:Threshold",
    "k_core": "recbias.data.filters:KCore",
    "deduplicate": "recbias.data.filters:Deduplicate",
    "sample_users": "recbias.data.filters:SampleUsers",
    "min_reviews": "recbias.data.filters:MinReviews",
    "mask_names": "recbias.language.masking.mask_names:MaskNames",
}

SPLITS = {
    "random": "recbias.data.splits.random_holdout:RandomHoldout",
    "temporal": "recbias.data.splits.temporal:Temporal",
    "leave_one_out": "recbias.data.splits.leave_one_out:LeaveOneOut",
    "given": "recbias.data.splits.given:GivenSplit",
}

QUERIES = {
    "users": "recbias.data.queries:Users",
    "table": "recbias.data.queries:QueryTable",
    "templates": "recbias.language.templates.templates:Templates",
    "lmrec-release": "recbias.data.datasets.lmrec_release:LMRecSentences",
    "fairllm": "recbias.language.templates.fairllm_prompts:FaiRLLMPrompts",
    "sentences": "recbias.data.sentences.sentence_queries:SentenceQueries",
}

DETECTORS = {
    "names": "recbias.detectors.names:Names",
    "causal_lm": "recbias.detectors.causal_lm:CausalLM",
    "masked_lm": "recbias.detectors.masked_lm:MaskedLM",
    "column": "recbias.detectors.column:Column",
    "sentences": "recbias.detectors.sentences:Sentences",
    "llm_judge": "recbias.detectors.llm_judge:LLMJudge",
}

RERANKERS = {
    "calibration": "recbias.rerankers.calibration:Calibration",
    "calibrated_popularity": "recbias.rerankers.calibrated_popularity:CalibratedPopularity",
    "MMR": "recbias.rerankers.mmr:MMR",
    "xQuAD": "recbias.rerankers.xquad:XQuAD",
    "CPFair": "recbias.rerankers.cp_fair:CPFair",
    "FA*IR": "recbias.rerankers.fa_ir:FAIR",
    "DetGreedy": "recbias.rerankers.det_greedy:DetGreedy",
}

TESTS = {
    "paired_t": "recbias.statistics.tests.paired:PairedT",
    "wilcoxon": "recbias.statistics.tests.paired:Wilcoxon",
    "sign_flip": "recbias.statistics.tests.sign_flip:SignFlip",
    "chi_squared": "recbias.statistics.tests.proportions:ChiSquared",
}

REGISTRIES: Mapping[str, Registry] = {
    "datasets": Registry("dataset", DATASETS, "recbias.datasets"),
    "filters": Registry("filter", FILTERS, "recbias.filters"),
    "splits": Registry("split", SPLITS, "recbias.splits"),
    "queries": Registry("query source", QUERIES, "recbias.queries"),
    "models": FamilyRegistry("model", MODELS, "recbias.models", FAMILIES),
    "rerankers": Registry("re-ranker", RERANKERS, "recbias.rerankers"),
    "detectors": Registry("detector", DETECTORS, "recbias.detectors"),
    "metrics": Registry("metric", METRICS, "recbias.metrics"),
    "tests": Registry("test", TESTS, "recbias.tests"),
}
"""The registry of each kind of plug-in, by the plural that ``recbias list`` takes."""

LISTINGS = Registry(
    "listing",
    {
        "prompts": "recbias.language.prompts.rubrics:load_all_prompts",
        "mitigations": "recbias.language.prompts.recommendation_prompts:load_mitigations",
        "terms": "recbias.language.terms.term_files:load_term_lists",
    },
    "recbias.listings",
)
"""Functions that load packaged entries by name, by the plural that ``recbias list`` takes."""
