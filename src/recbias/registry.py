"""Plug-ins that serve many names: ``recbole/BPR`` is ``recbole`` with ``model: BPR``.

The built-in metrics by name, as ``name: module:Class``.
The built-in models by name, as ``name: module:Class``.
The built-in plug-ins by name, as ``name: module:Class``; they are imported when loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from recbias.core.registry import Registry
from recbias.core.text import normalize_name


@dataclass(frozen=True)
class FamilyRegistry(Registry):
    """A registry some of whose plug-ins take a setting from the part of a name after the slash.

    Args:
        families: The setting, by the name of the plug-in.

    >>> models = FamilyRegistry("model", {"lib": "a:B"}, "none", {"lib": "model"})
    >>> models.resolve_name("LIB/Pop"), models.read_member("LIB/Pop"), models.read_member("lib")
    ('lib/Pop', {'model': 'Pop'}, {})
    """

    families: Mapping[str, str] = field(default_factory=dict)

    def find_spelling(self, name: str) -> str | None:
        """Return the registered spelling of a name; the member stays as it is."""
        family, member = self._split_name(name)
        return f"{family}/{member}" if family else super().find_spelling(name)

    def load(self, name: str, *, base: Path | None = None) -> type:
        """Return the class of a name, which all members of a family share."""
        return super().load(self._split_name(name)[0] or name, base=base)

    def read_member(self, name: str) -> dict[str, str]:
        """Return the setting in the name of a member of a family; else none."""
        family, member = self._split_name(name)
        return {self.families[family]: member} if family else {}

    def _split_name(self, name: str) -> tuple[str, str]:
        """Return the family and the member that a name consists of, blank for other names."""
        prefix, _, member = name.partition("/")
        families = {normalize_name(family): family for family in self.families}
        family = families.get(normalize_name(prefix), "") if member else ""
        return family, member if family else ""


METRICS = {
    "nDCG": "recbias.metrics.accuracy:NDCG",
    "HR": "recbias.metrics.accuracy:HitRate",
    "MRR": "recbias.metrics.accuracy:MRR",
    "MAP": "recbias.metrics.accuracy:MAP",
    "mean_precision": "recbias.metrics.accuracy:MeanPrecision",
    "propensity_nDCG": "recbias.metrics.propensity:PropensityNDCG",
    "propensity_recall": "recbias.metrics.propensity:PropensityRecall",
    "propensity_MAP": "recbias.metrics.propensity:PropensityMAP",
    "Precision": "recbias.metrics.accuracy:Precision",
    "Recall": "recbias.metrics.accuracy:Recall",
    "R-Precision": "recbias.metrics.accuracy:RPrecision",
    "F1": "recbias.metrics.accuracy:F1",
    "class_accuracy": "recbias.metrics.accuracy:ClassAccuracy",
    "class_precision": "recbias.metrics.accuracy:ClassPrecision",
    "class_recall": "recbias.metrics.accuracy:ClassRecall",
    "class_F1": "recbias.metrics.accuracy:ClassF1",
    "class_MRR": "recbias.metrics.accuracy:ClassMRR",
    "class_HR": "recbias.metrics.accuracy:ClassHitRate",
    "category_precision": "recbias.metrics.accuracy:CategoryPrecision",
    "category_R-precision": "recbias.metrics.accuracy:CategoryRPrecision",
    "category_MAP": "recbias.metrics.accuracy:CategoryMAP",
    "category_MRR": "recbias.metrics.accuracy:CategoryMRR",
    "category_nDCG": "recbias.metrics.accuracy:CategoryNDCG",
    "ItemCoverage": "recbias.metrics.popularity:ItemCoverage",
    "Gini": "recbias.metrics.popularity:Gini",
    "Entropy": "recbias.metrics.popularity:Entropy",
    "Jain": "recbias.metrics.item_fairness:Jain",
    "FSat": "recbias.metrics.item_fairness:FSat",
    "corrected_Jain": "recbias.metrics.item_fairness:CorrectedJain",
    "corrected_QF": "recbias.metrics.item_fairness:CorrectedQF",
    "corrected_Entropy": "recbias.metrics.item_fairness:CorrectedEntropy",
    "corrected_Gini": "recbias.metrics.item_fairness:CorrectedGini",
    "corrected_FSat": "recbias.metrics.item_fairness:CorrectedFSat",
    "II-F": "recbias.metrics.item_fairness:IndividualExposure",
    "AI-F": "recbias.metrics.item_fairness:OverallExposure",
    "ARP": "recbias.metrics.popularity:ARP",
    "APLT": "recbias.metrics.popularity:APLT",
    "ACLT": "recbias.metrics.popularity:ACLT",
    "PopREO": "recbias.metrics.popularity:PopREO",
    "PopRSP": "recbias.metrics.popularity:PopRSP",
    "log_popularity_difference": ("recbias.metrics.popularity:LogPopularityDifference"),
    "popularity_lift": "recbias.metrics.popularity:PopularityLift",
    "gini_difference": "recbias.metrics.popularity:GiniDifference",
    "herfindahl_difference": "recbias.metrics.popularity:HerfindahlDifference",
    "popularity_rank_correlation": "recbias.metrics.popularity:PopularityRankCorrelation",
    "EE-D": "recbias.metrics.exposure:ExpectedExposureDisparity",
    "EE-R": "recbias.metrics.exposure:ExpectedExposureRelevance",
    "EE-L": "recbias.metrics.exposure:ExpectedExposureLoss",
    "AWRF": "recbias.metrics.exposure:AWRF",
    "AWRF-min-max": "recbias.metrics.exposure:AttentionRatio",
    "EXP": "recbias.metrics.exposure:ExposureParity",
    "EXPU": "recbias.metrics.exposure:ExposureToRelevance",
    "EXPRU": "recbias.metrics.exposure:ClicksToRelevance",
    "exposure_gap": "recbias.metrics.exposure:ExposureGap",
    "provider_gap": "recbias.metrics.exposure:ProviderGap",
    "provider_gini": "recbias.metrics.exposure:ProviderGini",
    "IAA": "recbias.metrics.exposure:AmortizedAttention",
    "calibration_kl": "recbias.metrics.calibration:CalibrationKL",
    "calibration_js": "recbias.metrics.calibration:CalibrationJS",
    "intra_list_distance": ("recbias.metrics.diversity:IntraListDistance"),
    "inter_user_distance": ("recbias.metrics.diversity:InterUserDistance"),
    "self_information": "recbias.metrics.diversity:SelfInformation",
    "unexpectedness": "recbias.metrics.diversity:Unexpectedness",
    "serendipity": "recbias.metrics.diversity:Serendipity",
    "homogenization": "recbias.metrics.diversity:Homogenization",
    "relative_utility": "recbias.metrics.diversity:RelativeUtility",
    "HIT_BAD": "recbias.metrics.labels:HitBad",
    "MRR_BAD": "recbias.metrics.labels:MrrBad",
    "REC-ST": "recbias.metrics.labels:RecST",
    "unmatched": "recbias.metrics.labels:Unmatched",
    "order_agreement": "recbias.metrics.labels:OrderAgreement",
    "first_slot_share": "recbias.metrics.labels:FirstSlotShare",
    "price_percentage": "recbias.metrics.templates.metrics:PricePercentage",
    "association": "recbias.metrics.templates.metrics:Association",
    "mean_attribute": "recbias.metrics.templates.metrics:MeanAttribute",
    "top_words": "recbias.metrics.templates.metrics:TopWords",
    "attribute_share": "recbias.metrics.templates.metrics:AttributeShare",
    "catalogue_counts": "recbias.metrics.labels:CatalogueCounts",
    "variance_split": "recbias.metrics.templates.metrics:VarianceSplit",
    "list_overlap": "recbias.metrics.identity:ListOverlap",
    "overlap_spread": "recbias.metrics.identity:OverlapSpread",
    "identity_effect": "recbias.metrics.identity:IdentityEffect",
    "label_accuracy": "recbias.metrics.labels:LabelAccuracy",
    "labelled_items": "recbias.metrics.labels:LabelledItems",
    "cohen_kappa": "recbias.metrics.labels:CohenKappa",
    "krippendorff_alpha": "recbias.metrics.labels:KrippendorffAlpha",
    "EAA": "recbias.metrics.embeddings.association:EAA",
    "GEAA": "recbias.metrics.embeddings.association:GEAA",
    "DEAA": "recbias.metrics.embeddings.association:DEAA",
    "R-RIPA": "recbias.metrics.embeddings.association:RRipa",
    "direction_checks": "recbias.metrics.embeddings.directions:DirectionChecks",
    "direction_similarity": "recbias.metrics.embeddings.directions:DirectionSimilarity",
    "attribute_classification": (
        "recbias.metrics.embeddings.classification:AttributeClassification"
    ),
    "latent_projection": "recbias.metrics.embeddings.association:LatentProjection",
    "perplexity_gap": "recbias.metrics.perplexity:PerplexityGap",
    "BLEU": "recbias.metrics.text:BLEU",
    "click_through_rate": "recbias.metrics.logged:ClickThroughRate",
    "shown_share": "recbias.metrics.logged:ShownShare",
    "shown_nDCG": "recbias.metrics.logged:ShownNDCG",
    "position_bias": "recbias.metrics.assumptions:PositionBias",
    "examination_sensitivity": "recbias.metrics.assumptions:ExaminationSensitivity",
    "propensity_sensitivity": "recbias.metrics.assumptions:PropensitySensitivity",
    "policy_value": "recbias.metrics.logged:PolicyValue",
    "effective_sample_size": "recbias.metrics.logged:EffectiveSampleSize",
    "distinct": "recbias.metrics.text:Distinct",
    "ROUGE-L": "recbias.metrics.text:RougeL",
    "unigram_F1": "recbias.metrics.text:UnigramF1",
    "embedding_average": "recbias.metrics.text:EmbeddingAverage",
    "greedy_matching": "recbias.metrics.text:GreedyMatching",
    "human_rate": "recbias.metrics.human:HumanRate",
    "human_score": "recbias.metrics.human:HumanScore",
    "human_agreement": "recbias.metrics.human:HumanAgreement",
}


MODELS = {
    "Random": "recbias.models.baselines:Random",
    "MostPop": "recbias.models.baselines:MostPop",
    "shown": "recbias.models.policies:Shown",
    "policy": "recbias.models.policies:GivenPolicy",
    "ItemKNN": "recbias.models.knn:ItemKNN",
    "UserKNN": "recbias.models.knn:UserKNN",
    "AttributeItemKNN": "recbias.models.knn:AttributeItemKNN",
    "AttributeUserKNN": "recbias.models.knn:AttributeUserKNN",
    "VSM": "recbias.models.knn:VSM",
    "PureSVD": "recbias.models.linear:PureSVD",
    "EASE": "recbias.models.linear:EASE",
    "SLIM": "recbias.models.linear:SLIM",
    "BPR-MF": "recbias.models.factorization:BPRMF",
    "LightGCN": "recbias.models.lightgcn:LightGCN",
    "MF": "recbias.models.factorization:MF",
    "FunkSVD": "recbias.models.factorization:FunkSVD",
    "PMF": "recbias.models.factorization:PMF",
    "ConvMF": "recbias.models.convmf:ConvMF",
    "MF2020": "recbias.models.factorization:MF2020",
    "AMF": "recbias.models.factorization:AMF",
    "MultiVAE": "recbias.models.multivae:MultiVAE",
    "NeuMF": "recbias.models.neumf:NeuMF",
    "DeepFM": "recbias.models.deepfm:DeepFM",
    "SASRec": "recbias.models.sequential:SASRec",
    "GRU4Rec": "recbias.models.sequential:GRU4Rec",
    "BERT4Rec": "recbias.models.sequential:BERT4Rec",
    "LMRec": "recbias.models.lmrec:LMRec",
    "TFIDF-LR": "recbias.models.text_probes:TFIDFLR",
    "Encoder-LR": "recbias.models.text_probes:EncoderLR",
    "WOK": "recbias.models.wok:WOK",
    "LMRerank": "recbias.models.lm_rerank:LMRerank",
    "ChatRecommender": "recbias.models.prompted:ChatRecommender",
    "LMLikelihood": "recbias.models.lm_likelihood:LMLikelihood",
    "language_model": "recbias.models.language_model:SentenceLanguageModel",
    "implicit/ALS": "recbias.models.implicit:ImplicitALS",
    "implicit/BPR": "recbias.models.implicit:ImplicitBPR",
    "implicit/LMF": "recbias.models.implicit:ImplicitLMF",
    "implicit/ItemKNN": "recbias.models.implicit:ImplicitItemKNN",
    "lenskit/Popular": "recbias.models.lenskit:LensKitPopular",
    "lenskit/Bias": "recbias.models.lenskit:LensKitBias",
    "lenskit/ItemKNN": "recbias.models.lenskit:LensKitItemKNN",
    "lenskit/UserKNN": "recbias.models.lenskit:LensKitUserKNN",
    "lenskit/EASE": "recbias.models.lenskit:LensKitEASE",
    "lenskit/SLIM": "recbias.models.lenskit:LensKitSLIM",
    "lenskit/ImplicitMF": "recbias.models.lenskit:LensKitImplicitMF",
    "lenskit/BiasedMF": "recbias.models.lenskit:LensKitBiasedMF",
    "lenskit/FunkSVD": "recbias.models.lenskit:LensKitFunkSVD",
    "lenskit/BiasedSVD": "recbias.models.lenskit:LensKitBiasedSVD",
    "lenskit/NMF": "recbias.models.lenskit:LensKitNMF",
    "lenskit/FlexMFImplicit": "recbias.models.lenskit:LensKitFlexMFImplicit",
    "lenskit/FlexMFExplicit": "recbias.models.lenskit:LensKitFlexMFExplicit",
    "recbole": "recbias.models.recbole:RecBole",
    "lists": "recbias.models.given:GivenLists",
    "lmrec_lists": "recbias.models.given:LMRecLists",
    "vectors": "recbias.models.given:GivenVectors",
    "sentence_scores": "recbias.models.given:GivenSentences",
    "responses": "recbias.models.given:GivenResponses",
}

FAMILIES = {"recbole": "model"}
"""The setting that takes the part of a model's name after the slash: ``recbole/BPR``."""


DATASETS = {
    "demo": "recbias.data.demo:Demo",
    "impressions": "recbias.data.impressions:ImpressionTable",
    "tables": "recbias.data.tables:Tables",
    "ml-100k": "recbias.data.movielens:MovieLens100K",
    "ml-1m": "recbias.data.movielens:MovieLens1M",
    "ml-10m": "recbias.data.movielens:MovieLens10M",
    "ml-20m": "recbias.data.movielens:MovieLens20M",
    "ml-25m": "recbias.data.movielens:MovieLens25M",
    "ml-32m": "recbias.data.movielens:MovieLens32M",
    "ml-latest-small": "recbias.data.movielens:MovieLensLatestSmall",
    "goodbooks-10k": "recbias.data.books_yelp:Goodbooks10K",
    "goodreads": "recbias.data.books_yelp:Goodreads",
    "mind": "recbias.data.declared:mind",
    "amazon-2023": "recbias.data.declared:amazon-2023",
    "lastfm-360k": "recbias.data.declared:lastfm-360k",
    "hetrec-lastfm": "recbias.data.declared:hetrec-lastfm",
    "hetrec-movielens": "recbias.data.declared:hetrec-movielens",
    "book-crossing": "recbias.data.declared:book-crossing",
    "steam": "recbias.data.declared:steam",
    "gowalla": "recbias.data.declared:gowalla",
    "kuairec": "recbias.data.declared:kuairec",
    "yambda": "recbias.data.declared:yambda",
    "open-bandit": "recbias.data.declared:open-bandit",
    "yelp": "recbias.data.books_yelp:Yelp",
    "lmrec-release": "recbias.data.lmrec:LMRecRelease",
    "chbias": "recbias.data.sentences:CHBias",
    "redditbias": "recbias.data.sentences:RedditBias",
    "crows_pairs": "recbias.data.sentences:CrowSPairs",
    "sentence_tables": "recbias.data.sentences:SentenceTables",
}

FILTERS = {
    "threshold": "recbias.data.filters_queries:Threshold",
    "k_core": "recbias.data.filters_queries:KCore",
    "deduplicate": "recbias.data.filters_queries:Deduplicate",
    "sample_users": "recbias.data.filters_queries:SampleUsers",
    "min_reviews": "recbias.data.filters_queries:MinReviews",
    "period": "recbias.data.filters_queries:Period",
    "language": "recbias.language.identification:Language",
    "mask_names": "recbias.language.masking:MaskNames",
}

SPLITS = {
    "random": "recbias.data.splits:RandomHoldout",
    "temporal": "recbias.data.splits:Temporal",
    "windows": "recbias.data.splits:Windows",
    "cold_start": "recbias.data.splits:ColdStart",
    "leave_one_out": "recbias.data.splits:LeaveOneOut",
    "given": "recbias.data.splits:GivenSplit",
}

QUERIES = {
    "users": "recbias.data.filters_queries:Users",
    "table": "recbias.data.filters_queries:QueryTable",
    "templates": "recbias.language.templates:Templates",
    "lmrec-release": "recbias.data.lmrec:LMRecSentences",
    "fairllm": "recbias.language.fairllm:FaiRLLMPrompts",
    "sentences": "recbias.data.sentences:SentenceQueries",
}

DETECTORS = {
    "names": "recbias.detectors.names:Names",
    "causal_lm": "recbias.detectors.groups:CausalLM",
    "masked_lm": "recbias.detectors.groups:MaskedLM",
    "column": "recbias.detectors.groups:Column",
    "sentences": "recbias.detectors.groups:Sentences",
    "human_labels": "recbias.detectors.groups:HumanLabels",
    "llm_judge": "recbias.detectors.judge:LLMJudge",
}

RERANKERS = {
    "calibration": "recbias.rerankers.relevance:Calibration",
    "calibrated_popularity": "recbias.rerankers.relevance:CalibratedPopularity",
    "MMR": "recbias.rerankers.relevance:MMR",
    "xQuAD": "recbias.rerankers.relevance:XQuAD",
    "CPFair": "recbias.rerankers.fair:CPFair",
    "FA*IR": "recbias.rerankers.fair:FAIR",
    "DetGreedy": "recbias.rerankers.fair:DetGreedy",
}

TESTS = {
    "paired_t": "recbias.statistics.paired:PairedT",
    "wilcoxon": "recbias.statistics.paired:Wilcoxon",
    "sign_flip": "recbias.statistics.paired:SignFlip",
    "chi_squared": "recbias.statistics.paired:ChiSquared",
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
        "prompts": "recbias.language.prompts:load_all_prompts",
        "mitigations": "recbias.language.prompts:load_mitigations",
        "terms": "recbias.language.terms:load_term_lists",
    },
    "recbias.listings",
)
"""Functions that load packaged entries by name, by the plural that ``recbias list`` takes."""
