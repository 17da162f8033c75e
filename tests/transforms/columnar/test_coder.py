"""Tables through Beam's coder: equal, whole, and no larger than their rows."""

from __future__ import annotations

import pyarrow as pa
from apache_beam.coders.typecoders import registry

from semrank.schemas.tables import CLICKS, FRONTIER
from semrank.transforms.columnar.coder import ArrowTableCoder, register


def test_tables_come_back_equal() -> None:
    table = pa.table({"a": [1, None], "b": [["x", "y"], []], "c": pa.array(["ä", "ä"]).dictionary_encode()})
    for sent in (table, table.slice(1), pa.concat_tables([table, table]), CLICKS.empty(), FRONTIER.empty()):
        back = ArrowTableCoder().decode(ArrowTableCoder().encode(sent))
        assert back.schema == sent.schema
        assert back.to_pylist() == sent.to_pylist()


def test_a_slice_is_encoded_without_its_parent() -> None:
    table = pa.table({"a": pa.array(range(100_000), pa.int64())})
    assert len(ArrowTableCoder().encode(table.slice(500, 10))) < 2000


def test_beam_finds_the_coder_by_type() -> None:
    register()
    coder = registry.get_coder(pa.Table)
    assert coder == ArrowTableCoder()
    assert hash(coder) == hash(ArrowTableCoder())
    assert coder.to_type_hint() is pa.Table
    assert not coder.is_deterministic()
