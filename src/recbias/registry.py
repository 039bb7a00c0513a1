"""The built-in plug-ins by name, as ``name: module:Class``; they are imported when loaded."""

from __future__ import annotations

from collections.abc import Mapping

from recbias.core.registry import Registry

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

LIBRARIES = {
    ("implicit", "Implicit"): "ALS BPR LMF ItemKNN",
    ("lenskit_lists", "LensKit"): "Popular Bias ItemKNN UserKNN EASE SLIM",
    ("lenskit_factors", "LensKit"): "ImplicitMF BiasedMF FunkSVD BiasedSVD NMF",
    ("lenskit_flexmf", "LensKit"): "FlexMFImplicit FlexMFExplicit",
}
"""The models of libraries by the module and the first part of the name of their classes."""

MODELS = {
    "Random": "recbias.models.unpersonalised:Random",
    "MostPop": "recbias.models.unpersonalised:MostPop",
    "ItemKNN": "recbias.models.neighbours.knn:ItemKNN",
    "UserKNN": "recbias.models.neighbours.knn:UserKNN",
    "AttributeItemKNN": "recbias.models.neighbours.attribute_knn:AttributeItemKNN",
    "AttributeUserKNN": "recbias.models.neighbours.attribute_knn:AttributeUserKNN",
    "VSM": "recbias.models.neighbours.vector_space:VSM",
    "PureSVD": "recbias.models.linear.pure_svd:PureSVD",
    "EASE": "recbias.models.linear.item_regressions:EASE",
    "SLIM": "recbias.models.linear.item_regressions:SLIM",
    "BPR-MF": "recbias.models.factorization.ranking_models:BPRMF",
    "LightGCN": "recbias.models.factorization.lightgcn:LightGCN",
    "MF": "recbias.models.factorization.rating_models:MF",
    "FunkSVD": "recbias.models.factorization.rating_models:FunkSVD",
    "PMF": "recbias.models.factorization.rating_models:PMF",
    "ConvMF": "recbias.models.neural.convmf:ConvMF",
    "MF2020": "recbias.models.factorization.ranking_models:MF2020",
    "AMF": "recbias.models.factorization.amf:AMF",
    "MultiVAE": "recbias.models.neural.multivae:MultiVAE",
    "NeuMF": "recbias.models.neural.neumf:NeuMF",
    "DeepFM": "recbias.models.neural.deepfm:DeepFM",
    "SASRec": "recbias.models.sequential.sasrec:SASRec",
    "GRU4Rec": "recbias.models.sequential.gru4rec:GRU4Rec",
    "BERT4Rec": "recbias.models.sequential.bert4rec:BERT4Rec",
    "LMRec": "recbias.models.text.lmrec:LMRec",
    "TFIDF-LR": "recbias.models.text.regressions:TFIDFLR",
    "Encoder-LR": "recbias.models.text.regressions:EncoderLR",
    "WOK": "recbias.models.chat.wok:WOK",
    "LMRerank": "recbias.models.chat.reranking:LMRerank",
    "ChatRecommender": "recbias.models.chat.prompted:ChatRecommender",
    "LMLikelihood": "recbias.models.chat.likelihood:LMLikelihood",
    "language_model": "recbias.models.sentences.language_model:SentenceLanguageModel",
    **{
        f"{module.partition('_')[0]}/{name}": f"recbias.models.libraries.{module}:{prefix}{name}"
        for (module, prefix), names in LIBRARIES.items()
        for name in names.split()
    },
    "lists": "recbias.models.given.lists:GivenLists",
    "lmrec_lists": "recbias.models.given.lmrec_lists:LMRecLists",
    "vectors": "recbias.models.given.vectors:GivenVectors",
    "sentence_scores": "recbias.models.given.sentence_scores:GivenSentences",
    "responses": "recbias.models.given.responses:GivenResponses",
}

DETECTORS = {
    "names": "recbias.detectors.names:Names",
    "causal_lm": "recbias.detectors.causal_lm:CausalLM",
    "masked_lm": "recbias.detectors.masked_lm:MaskedLM",
    "column": "recbias.detectors.column:Column",
    "sentences": "recbias.detectors.sentences:Sentences",
    "llm_judge": "recbias.detectors.llm_judge:LLMJudge",
}

METRICS = {
    "nDCG": "recbias.metrics.accuracy.ranking:NDCG",
    "HR": "recbias.metrics.accuracy.ranking:HitRate",
    "MRR": "recbias.metrics.accuracy.ranking:MRR",
    "MAP": "recbias.metrics.accuracy.ranking:MAP",
    "mean_precision": "recbias.metrics.accuracy.ranking:MeanPrecision",
    "Precision": "recbias.metrics.accuracy.ranking:Precision",
    "Recall": "recbias.metrics.accuracy.ranking:Recall",
    "R-Precision": "recbias.metrics.accuracy.ranking:RPrecision",
    "F1": "recbias.metrics.accuracy.ranking:F1",
    "class_accuracy": "recbias.metrics.accuracy.class_prediction:ClassAccuracy",
    "class_precision": "recbias.metrics.accuracy.class_prediction:ClassPrecision",
    "class_recall": "recbias.metrics.accuracy.class_prediction:ClassRecall",
    "class_F1": "recbias.metrics.accuracy.class_prediction:ClassF1",
    "class_MRR": "recbias.metrics.accuracy.class_prediction:ClassMRR",
    "class_HR": "recbias.metrics.accuracy.class_prediction:ClassHitRate",
    "category_precision": "recbias.metrics.accuracy.category_prediction:CategoryPrecision",
    "category_R-precision": "recbias.metrics.accuracy.category_prediction:CategoryRPrecision",
    "category_MAP": "recbias.metrics.accuracy.category_prediction:CategoryMAP",
    "category_MRR": "recbias.metrics.accuracy.category_prediction:CategoryMRR",
    "category_nDCG": "recbias.metrics.accuracy.category_prediction:CategoryNDCG",
    "ItemCoverage": "recbias.metrics.popularity.coverage:ItemCoverage",
    "Gini": "recbias.metrics.popularity.coverage:Gini",
    "Entropy": "recbias.metrics.popularity.coverage:Entropy",
    "Jain": "recbias.metrics.item_fairness.item_counts:Jain",
    "FSat": "recbias.metrics.item_fairness.item_counts:FSat",
    "corrected_Jain": "recbias.metrics.item_fairness.corrected_counts:CorrectedJain",
    "corrected_QF": "recbias.metrics.item_fairness.corrected_counts:CorrectedQF",
    "corrected_Entropy": "recbias.metrics.item_fairness.corrected_counts:CorrectedEntropy",
    "corrected_Gini": "recbias.metrics.item_fairness.corrected_counts:CorrectedGini",
    "corrected_FSat": "recbias.metrics.item_fairness.corrected_counts:CorrectedFSat",
    "II-F": "recbias.metrics.item_fairness.joint_exposure:IndividualExposure",
    "AI-F": "recbias.metrics.item_fairness.joint_exposure:OverallExposure",
    "ARP": "recbias.metrics.popularity.mean_popularity:ARP",
    "APLT": "recbias.metrics.popularity.long_tail:APLT",
    "ACLT": "recbias.metrics.popularity.long_tail:ACLT",
    "PopREO": "recbias.metrics.popularity.parity:PopREO",
    "PopRSP": "recbias.metrics.popularity.parity:PopRSP",
    "log_popularity_difference": (
        "recbias.metrics.popularity.mean_popularity:LogPopularityDifference"
    ),
    "popularity_lift": "recbias.metrics.popularity.mean_popularity:PopularityLift",
    "gini_difference": "recbias.metrics.popularity.profile:GiniDifference",
    "herfindahl_difference": "recbias.metrics.popularity.profile:HerfindahlDifference",
    "popularity_rank_correlation": "recbias.metrics.popularity.profile:PopularityRankCorrelation",
    "EE-D": "recbias.metrics.exposure.expected_exposure:ExpectedExposureDisparity",
    "EE-R": "recbias.metrics.exposure.expected_exposure:ExpectedExposureRelevance",
    "EE-L": "recbias.metrics.exposure.expected_exposure:ExpectedExposureLoss",
    "AWRF": "recbias.metrics.exposure.attention:AWRF",
    "AWRF-min-max": "recbias.metrics.exposure.exposure_ratios:AttentionRatio",
    "EXP": "recbias.metrics.exposure.exposure_ratios:ExposureParity",
    "EXPU": "recbias.metrics.exposure.exposure_ratios:ExposureToRelevance",
    "EXPRU": "recbias.metrics.exposure.exposure_ratios:ClicksToRelevance",
    "exposure_gap": "recbias.metrics.exposure.provider_gaps:ExposureGap",
    "provider_gap": "recbias.metrics.exposure.provider_gaps:ProviderGap",
    "provider_gini": "recbias.metrics.exposure.provider_gaps:ProviderGini",
    "IAA": "recbias.metrics.exposure.amortized_attention:AmortizedAttention",
    "calibration_kl": "recbias.metrics.calibration.calibration:CalibrationKL",
    "calibration_js": "recbias.metrics.calibration.calibration:CalibrationJS",
    "intra_list_distance": ("recbias.metrics.diversity.intra_list_distance:IntraListDistance"),
    "inter_user_distance": ("recbias.metrics.diversity.inter_user_distance:InterUserDistance"),
    "self_information": "recbias.metrics.diversity.novelty:SelfInformation",
    "unexpectedness": "recbias.metrics.diversity.unexpectedness:Unexpectedness",
    "serendipity": "recbias.metrics.diversity.unexpectedness:Serendipity",
    "HIT_BAD": "recbias.metrics.stereotype:HitBad",
    "MRR_BAD": "recbias.metrics.stereotype:MrrBad",
    "REC-ST": "recbias.metrics.stereotype:RecST",
    "unmatched": "recbias.metrics.unmatched:Unmatched",
    "order_agreement": "recbias.metrics.order_dependence:OrderAgreement",
    "first_slot_share": "recbias.metrics.order_dependence:FirstSlotShare",
    "price_percentage": "recbias.metrics.prompts.price_percentage:PricePercentage",
    "association": "recbias.metrics.prompts.association:Association",
    "mean_attribute": "recbias.metrics.prompts.mean_attribute:MeanAttribute",
    "top_words": "recbias.metrics.prompts.top_words:TopWords",
    "attribute_share": "recbias.metrics.prompts.attribute_share:AttributeShare",
    "catalogue_counts": "recbias.metrics.catalogue_counts:CatalogueCounts",
    "variance_split": "recbias.metrics.prompts.variance_split:VarianceSplit",
    "list_overlap": "recbias.metrics.identity.list_overlap:ListOverlap",
    "overlap_spread": "recbias.metrics.identity.overlap_effects:OverlapSpread",
    "identity_effect": "recbias.metrics.identity.overlap_effects:IdentityEffect",
    "label_accuracy": "recbias.metrics.label_agreement:LabelAccuracy",
    "labelled_items": "recbias.metrics.labelled_items:LabelledItems",
    "cohen_kappa": "recbias.metrics.label_agreement:CohenKappa",
    "krippendorff_alpha": "recbias.metrics.label_agreement:KrippendorffAlpha",
    "EAA": "recbias.metrics.embeddings.embedding_association:EAA",
    "GEAA": "recbias.metrics.embeddings.embedding_association:GEAA",
    "DEAA": "recbias.metrics.embeddings.embedding_association:DEAA",
    "R-RIPA": "recbias.metrics.embeddings.r_ripa:RRipa",
    "direction_checks": "recbias.metrics.embeddings.direction_checks:DirectionChecks",
    "direction_similarity": "recbias.metrics.embeddings.direction_similarity:DirectionSimilarity",
    "attribute_classification": (
        "recbias.metrics.embeddings.attribute_classification:AttributeClassification"
    ),
    "latent_projection": "recbias.metrics.embeddings.latent_projection:LatentProjection",
    "perplexity_gap": "recbias.metrics.text.perplexity_gap:PerplexityGap",
    "BLEU": "recbias.metrics.text.text_quality:BLEU",
    "distinct": "recbias.metrics.text.text_quality:Distinct",
    "ROUGE-L": "recbias.metrics.text.text_quality:RougeL",
    "unigram_F1": "recbias.metrics.text.text_quality:UnigramF1",
    "embedding_average": "recbias.metrics.text.embedding_similarity:EmbeddingAverage",
    "greedy_matching": "recbias.metrics.text.embedding_similarity:GreedyMatching",
    "human_rate": "recbias.metrics.text.human_ratings:HumanRate",
    "human_score": "recbias.metrics.text.human_ratings:HumanScore",
    "human_agreement": "recbias.metrics.text.human_ratings:HumanAgreement",
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
    "models": Registry("model", MODELS, "recbias.models"),
    "detectors": Registry("detector", DETECTORS, "recbias.detectors"),
    "metrics": Registry("metric", METRICS, "recbias.metrics"),
    "tests": Registry("test", TESTS, "recbias.tests"),
}
"""The registry of each kind of plug-in, by the plural that ``recbias list`` takes."""

LISTINGS = Registry(
    "listing",
    {
        "prompts": "recbias.language.prompts.request_prompts:load_all_prompts",
        "mitigations": "recbias.language.prompts.mitigations:load_mitigations",
        "terms": "recbias.language.terms.term_files:load_term_lists",
    },
    "recbias.listings",
)
"""Functions that load packaged entries by name, by the plural that ``recbias list`` takes."""
