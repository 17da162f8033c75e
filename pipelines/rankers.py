"""Which step makes a ranker's scores, from what the stages before it have made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apache_beam as beam

from semrank.pipelines.config import DEFAULT_ONTOLOGY, GRAPH_RANKERS, RoundConfig
from semrank.schemas.tables import CLASSES
from semrank.transforms.columnar import files
from semrank.transforms.columnar.steps import Collection
from semrank.transforms.ranking.cosine import CosineSettings
from semrank.transforms.ranking.focused_steps import RankByFocused
from semrank.transforms.ranking.graph_steps import RankByGraph
from semrank.transforms.ranking.hmm import HmmSettings
from semrank.transforms.ranking.keyword import KeywordSettings
from semrank.transforms.ranking.layer_steps import RankByHmm, RankByLinkContext, RankByRelevancyContext
from semrank.transforms.ranking.link_context import LinkContextSettings
from semrank.transforms.ranking.ontology import OntologySettings
from semrank.transforms.ranking.ontology_database import learn_from_database
from semrank.transforms.ranking.ontology_files import read_ontology
from semrank.transforms.ranking.ontology_model import Ontology
from semrank.transforms.ranking.ontology_steps import RankByOntology
from semrank.transforms.ranking.relevancy_context import RelevancyContextSettings
from semrank.transforms.ranking.text_steps import RankByCosine, RankByKeyword


def score_urls(
    facts: Mapping[str, Collection],
    config: RoundConfig,
    output: str,
    *,
    query: list[str],
    partitions: int,
    links: int,
) -> Collection:
    """The scores of the ranker that the configuration names, tables of `SCORED_SCHEMA`.

    Args:
        facts: `descriptions`, `vocabulary`, `links`, `click_edges` and `harvested`; of rankers by graphs `nodes` and
            `links`.
        config: names the ranker, which is another one than SemRank.
        output: the round's folder.
        query: words of the query.
        partitions: number of partitions of URLs.
        links: number of links of the snapshot, by which rankers by graphs iterate on one worker or over blocks.
    """
    if config.ranker == "ontology":
        ranker = RankByOntology(
            named_ontology(config.ontology or DEFAULT_ONTOLOGY, config.topic),
            OntologySettings(sigma="as-printed" if config.sigma == "as-printed" else "lift"),
            language=config.language,
            query=query,
            partitions=partitions,
            folder=files.join(output, CLASSES.name),
        )
        return dict(facts) | ranker  # type: ignore[no-any-return]
    if config.ranker in GRAPH_RANKERS:
        return dict(facts) | RankByGraph(config.ranker, level=config.level, links=links)  # type: ignore[no-any-return]
    by_words: dict[str, Any] = {"query": query, "partitions": partitions}
    rankers: dict[str, beam.PTransform[Any, Any]] = {
        "focused": RankByFocused(**by_words),
        "cosine": RankByCosine(CosineSettings(), **by_words),
        "keyword": RankByKeyword(KeywordSettings(), **by_words),
        "link-context": RankByLinkContext(LinkContextSettings(), **by_words),
        "relevancy-context": RankByRelevancyContext(RelevancyContextSettings(), **by_words),
        "hmm": RankByHmm(HmmSettings(), **by_words),
    }
    return dict(facts) | rankers[config.ranker]  # type: ignore[no-any-return]


def named_ontology(name: str, topic: str | None) -> Ontology:
    """The ontology that an option names: a shipped one, a file, or a database's URL.

    Raises:
        InputError: it can't be read, or has no such topic.
    """
    scheme = name.partition("://")[0] if "://" in name else ""
    if scheme and scheme not in ("gs", "s3", "file"):
        return learn_from_database(name, topic)
    return read_ontology(name, topic)
