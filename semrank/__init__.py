"""Batch recrawl ranking on Apache Beam.

The packages lie at the top level of the repository; this package gives them one name, so that an installation does not
occupy names as common as `pipelines`.
"""
