"""What SemRank is computed with, from the options of a round."""

from __future__ import annotations

import pyarrow as pa

from semrank.pipelines.config import RoundConfig
from semrank.transforms.context.objects import ObjectSettings
from semrank.transforms.context.words import lemmas_of
from semrank.transforms.replay.semrank_local import Reading
from semrank.transforms.similarity.settings import SimilaritySettings
from semrank.transforms.weblog.relations import RelationSettings


def object_settings(config: RoundConfig) -> ObjectSettings:
    """How attributes are chosen."""
    return ObjectSettings(
        keywords_per_page=config.keywords_per_page,
        min_clicks=config.min_clicks,
        max_keywords_per_url=config.max_keywords_per_url,
        language=config.language,
        count_every_click=config.c_edges == "clicks",
        query_words=config.query_words,
        nouns=config.nouns_only,
    )


def similarity_settings(config: RoundConfig) -> SimilaritySettings:
    """How similarities are computed."""
    return SimilaritySettings(
        weight=config.weight,
        intension_norm=config.intension_norm,
        extension=config.extension,
        alpha=config.alpha,
        top_probability=config.top_probability,
        smoothing=config.smoothing,
    )


def relation_settings(config: RoundConfig) -> RelationSettings:
    """How relations are learned."""
    return RelationSettings(
        groups=config.user_groups,
        max_words=config.max_keywords_per_url,
        min_support=config.min_relation_support,
        topic_log=config.log_scope == "topic",
        needs_word=config.isa_needs_word,
        query=tuple(query_words(config)),
    )


def query_words(config: RoundConfig) -> list[str]:
    """The distinct words of the query, as pages' keywords are made."""
    if config.query is None:
        return []
    return sorted(
        set(lemmas_of(pa.array([config.query]), fallback=config.language, nouns=config.nouns_only)[0].as_py())
    )


def reading(config: RoundConfig) -> Reading:
    """How a replay computes SemRank."""
    return Reading(
        object_settings(config),
        similarity_settings(config),
        relation_settings(config),
        config.min_support,
        config.base,
    )
