"""Debiasing of language models: losses beside the language-model loss, and augmentation."""
