"""The table of built-in names: one line each, ``name: module:Class``. Nothing is imported here."""

from __future__ import annotations

from collections.abc import Mapping

from recbias.core.registry import Registry

DATASETS = {
    "demo": "recbias.data.demo:Demo",
    "tables": "recbias.data.tables:Tables",
    "ml-100k": "recbias.data.movielens:MovieLens100K",
    "ml-1m": "recbias.data.movielens:MovieLens1M",
    "ml-10m": "recbias.data.movielens:MovieLens10M",
    "ml-20m": "recbias.data.movielens:MovieLens20M",
    "ml-25m": "recbias.data.movielens:MovieLens25M",
    "ml-32m": "recbias.data.movielens:MovieLens32M",
    "ml-latest-small": "recbias.data.movielens:MovieLensLatestSmall",
    "goodbooks-10k": "recbias.data.goodbooks:Goodbooks10K",
    "goodreads": "recbias.data.goodreads:Goodreads",
    "yelp": "recbias.data.yelp:Yelp",
    "lmrec-release": "recbias.data.lmrec_release:LMRecRelease",
}

FILTERS = {
    "threshold": "recbias.data.filters:Threshold",
    "k_core": "recbias.data.filters:KCore",
    "deduplicate": "recbias.data.filters:Deduplicate",
    "sample_users": "recbias.data.filters:SampleUsers",
    "min_reviews": "recbias.data.filters:MinReviews",
    "mask_names": "recbias.language.masking:MaskNames",
}

SPLITS = {
    "random": "recbias.data.holdout:RandomHoldout",
    "temporal": "recbias.data.temporal:Temporal",
    "leave_one_out": "recbias.data.leave_out:LeaveOneOut",
    "given": "recbias.data.given_split:GivenSplit",
}

QUERIES = {
    "users": "recbias.data.asking:Users",
    "table": "recbias.data.asking:QueryTable",
    "templates": "recbias.language.templates:Templates",
    "lmrec-release": "recbias.data.lmrec_release:LMRecSentences",
    "fairllm": "recbias.language.prompts_json:FaiRLLMPrompts",
}

MODELS = {
    "Random": "recbias.models.unpersonalised:Random",
    "MostPop": "recbias.models.unpersonalised:MostPop",
    "ItemKNN": "recbias.models.neighbours:ItemKNN",
    "UserKNN": "recbias.models.neighbours:UserKNN",
    "AttributeItemKNN": "recbias.models.attribute_neighbours:AttributeItemKNN",
    "AttributeUserKNN": "recbias.models.attribute_neighbours:AttributeUserKNN",
    "VSM": "recbias.models.vsm:VSM",
    "PureSVD": "recbias.models.linear:PureSVD",
    "EASE": "recbias.models.linear:EASE",
    "SLIM": "recbias.models.linear:SLIM",
    "BPR-MF": "recbias.models.pairwise:BPRMF",
    "MF": "recbias.models.matrix_factorisation:MF",
    "FunkSVD": "recbias.models.matrix_factorisation:FunkSVD",
    "PMF": "recbias.models.pmf:PMF",
    "ConvMF": "recbias.models.convmf:ConvMF",
    "MF2020": "recbias.models.rendle:MF2020",
    "AMF": "recbias.models.amf:AMF",
    "MultiVAE": "recbias.models.multivae:MultiVAE",
    "NeuMF": "recbias.models.neumf:NeuMF",
    "DeepFM": "recbias.models.deepfm:DeepFM",
    "LMRec": "recbias.models.lmrec:LMRec",
    "TFIDF-LR": "recbias.models.tfidf_lr:TFIDFLR",
    "Encoder-LR": "recbias.models.encoder_lr:EncoderLR",
    "implicit/ALS": "recbias.models.implicit_models:ImplicitALS",
    "implicit/BPR": "recbias.models.implicit_models:ImplicitBPR",
    "implicit/LMF": "recbias.models.implicit_models:ImplicitLMF",
    "implicit/ItemKNN": "recbias.models.implicit_models:ImplicitItemKNN",
    "lenskit/Popular": "recbias.models.lenskit_baselines:LensKitPopular",
    "lenskit/Bias": "recbias.models.lenskit_baselines:LensKitBias",
    "lenskit/ItemKNN": "recbias.models.lenskit_neighbours:LensKitItemKNN",
    "lenskit/UserKNN": "recbias.models.lenskit_neighbours:LensKitUserKNN",
    "lenskit/EASE": "recbias.models.lenskit_neighbours:LensKitEASE",
    "lenskit/SLIM": "recbias.models.lenskit_neighbours:LensKitSLIM",
    "lenskit/ImplicitMF": "recbias.models.lenskit_factors:LensKitImplicitMF",
    "lenskit/BiasedMF": "recbias.models.lenskit_factors:LensKitBiasedMF",
    "lenskit/FunkSVD": "recbias.models.lenskit_factors:LensKitFunkSVD",
    "lenskit/BiasedSVD": "recbias.models.lenskit_sklearn:LensKitBiasedSVD",
    "lenskit/NMF": "recbias.models.lenskit_sklearn:LensKitNMF",
    "lenskit/FlexMFImplicit": "recbias.models.lenskit_flexmf:LensKitFlexMFImplicit",
    "lenskit/FlexMFExplicit": "recbias.models.lenskit_flexmf:LensKitFlexMFExplicit",
    "lists": "recbias.models.given_lists:GivenLists",
    "lmrec_lists": "recbias.models.lmrec_lists:LMRecLists",
    "vectors": "recbias.models.given_vectors:GivenVectors",
    "sentence_scores": "recbias.models.given_sentences:GivenSentences",
    "responses": "recbias.models.given_responses:GivenResponses",
}

DETECTORS = {
    "names": "recbias.detectors.names:Names",
    "column": "recbias.detectors.column:Column",
    "sentences": "recbias.detectors.sentences:Sentences",
}

METRICS = {
    "nDCG": "recbias.metrics.accuracy:NDCG",
    "HR": "recbias.metrics.accuracy:HitRate",
    "MRR": "recbias.metrics.accuracy:MRR",
    "MAP": "recbias.metrics.accuracy:MAP",
    "mean_precision": "recbias.metrics.accuracy:MeanPrecision",
    "Precision": "recbias.metrics.accuracy:Precision",
    "Recall": "recbias.metrics.accuracy:Recall",
    "R-Precision": "recbias.metrics.accuracy:RPrecision",
    "F1": "recbias.metrics.accuracy:F1",
    "class_accuracy": "recbias.metrics.class_prediction:ClassAccuracy",
    "class_precision": "recbias.metrics.class_prediction:ClassPrecision",
    "class_recall": "recbias.metrics.class_prediction:ClassRecall",
    "class_F1": "recbias.metrics.class_prediction:ClassF1",
    "class_MRR": "recbias.metrics.class_prediction:ClassMRR",
    "class_HR": "recbias.metrics.class_prediction:ClassHitRate",
    "category_precision": "recbias.metrics.category_coverage:CategoryPrecision",
    "category_R-precision": "recbias.metrics.category_coverage:CategoryRPrecision",
    "category_MAP": "recbias.metrics.category_coverage:CategoryMAP",
    "category_MRR": "recbias.metrics.category_coverage:CategoryMRR",
    "category_nDCG": "recbias.metrics.category_coverage:CategoryNDCG",
    "ItemCoverage": "recbias.metrics.coverage:ItemCoverage",
    "Gini": "recbias.metrics.coverage:Gini",
    "Entropy": "recbias.metrics.coverage:Entropy",
    "ARP": "recbias.metrics.popularity:ARP",
    "APLT": "recbias.metrics.popularity_tail:APLT",
    "ACLT": "recbias.metrics.popularity_tail:ACLT",
    "PopREO": "recbias.metrics.popularity_parity:PopREO",
    "PopRSP": "recbias.metrics.popularity_parity:PopRSP",
    "log_popularity_difference": "recbias.metrics.popularity:LogPopularityDifference",
    "popularity_lift": "recbias.metrics.popularity:PopularityLift",
    "gini_difference": "recbias.metrics.popularity_profile:GiniDifference",
    "herfindahl_difference": "recbias.metrics.popularity_profile:HerfindahlDifference",
    "popularity_rank_correlation": "recbias.metrics.popularity_profile:PopularityRankCorrelation",
    "HIT_BAD": "recbias.metrics.stereotype:HitBad",
    "MRR_BAD": "recbias.metrics.stereotype:MrrBad",
    "REC-ST": "recbias.metrics.stereotype:RecST",
    "price_percentage": "recbias.metrics.price_percentage:PricePercentage",
    "association": "recbias.metrics.association_score:Association",
    "mean_attribute": "recbias.metrics.mean_attribute:MeanAttribute",
    "top_words": "recbias.metrics.top_words:TopWords",
    "variance_split": "recbias.metrics.variance_split:VarianceSplit",
    "cohen_kappa": "recbias.metrics.label_agreement:CohenKappa",
    "krippendorff_alpha": "recbias.metrics.label_agreement:KrippendorffAlpha",
    "EAA": "recbias.metrics.embedding_association:EAA",
    "GEAA": "recbias.metrics.embedding_association:GEAA",
    "DEAA": "recbias.metrics.embedding_association:DEAA",
    "R-RIPA": "recbias.metrics.relational:RRipa",
    "direction_checks": "recbias.metrics.direction_checks:DirectionChecks",
    "direction_similarity": "recbias.metrics.direction_similarity:DirectionSimilarity",
    "attribute_classification": (
        "recbias.metrics.attribute_classification:AttributeClassification"
    ),
    "latent_projection": "recbias.metrics.latent_projection:LatentProjection",
    "perplexity_gap": "recbias.metrics.perplexity_gap:PerplexityGap",
    "BLEU": "recbias.metrics.text_quality:BLEU",
    "distinct": "recbias.metrics.text_quality:Distinct",
    "ROUGE-L": "recbias.metrics.text_quality:RougeL",
    "unigram_F1": "recbias.metrics.text_quality:UnigramF1",
}

TESTS = {
    "paired_t": "recbias.statistics.paired:PairedT",
    "wilcoxon": "recbias.statistics.paired:Wilcoxon",
    "sign_flip": "recbias.statistics.sign_flip:SignFlip",
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
"""Every kind of plug-in, under the plural that ``recbias list`` takes."""
