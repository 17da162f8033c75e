"""What the plots show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from semrank.pipelines.evaluation_plots import mean_curves, mean_sweeps, write_plots
from semrank.schemas.tables import CURVE, SWEEP


def curve(ranker: str, seed_set: int, relevant: list[int], total: int, topic: str = "t") -> pa.Table:
    rows = [
        (ranker, "frontier", topic, seed_set, page, found, found / page, found / page, found / total, 0.0, page / 10)
        for page, found in enumerate(relevant, start=1)
    ]
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), CURVE.schema, strict=True)], CURVE.schema
    )


def sweep(ranker: str, thresholds: list[float], f_measures: list[float]) -> pa.Table:
    rows = [(ranker, "content", "t", 0, t, 1, 1, 1.0, 1.0, f) for t, f in zip(thresholds, f_measures, strict=True)]
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), SWEEP.schema, strict=True)], SWEEP.schema
    )


def test_means_go_on_where_a_crawl_ended() -> None:
    table = pa.concat_tables([curve("b", 0, [1, 1, 2, 3], 4), curve("b", 1, [0, 1], 2), curve("a", 0, [0], 1)])
    means = mean_curves(table, 4)
    assert list(means) == [("b", "frontier"), ("a", "frontier")]
    both = means["b", "frontier"]
    np.testing.assert_allclose(
        both["harvest"], [(1 + 0) / 2, (1 / 2 + 1 / 2) / 2, (2 / 3 + 1 / 3) / 2, (3 / 4 + 1 / 4) / 2]
    )
    np.testing.assert_allclose(both["recall"], [1 / 8, (1 / 4 + 1 / 2) / 2, (1 / 2 + 1 / 2) / 2, (3 / 4 + 1 / 2) / 2])
    np.testing.assert_allclose(both["seconds"], [0.1, 0.2, (0.3 + 0.2) / 2, (0.4 + 0.2) / 2])
    # F of a crawl, then the mean: 2 PR / (P + R) = 2/5 and 0 after one page.
    np.testing.assert_allclose(both["f_measure"][0], (2 * 1 * (1 / 4) / (5 / 4) + 0) / 2)
    assert means["a", "frontier"]["f_measure"].tolist() == [0] * 4


def test_mean_of_sweeps() -> None:
    found = mean_sweeps(pa.concat_tables([sweep("a", [0.0, 0.5], [0.2, 0.4]), sweep("a", [0.5, 0.0], [0.0, 1.0])]))
    thresholds, values = found["a", "content"]
    assert thresholds.tolist() == [0, 0.5]
    np.testing.assert_allclose(values, [0.6, 0.2])


def test_plots_are_the_same_every_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table, thresholds = curve("a", 0, [1, 1], 2), sweep("a", [0.0, 0.5], [0.2, 0.4])
    names = [write_plots(str(tmp_path / name), table, thresholds, 3) for name in ("one", "two")]
    assert names[0] == names[1] == sorted(names[0], key=names[0].index)
    assert {Path(name).stem for name in names[0]} == {
        "harvest",
        "precision-recall",
        "f-measure",
        "f-measure-recall",
        "time-recall",
        "time-pages",
        "threshold",
    }
    for name in names[0]:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_row_of_panels_for_each_topic_and_no_plot_without_thresholds(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table = pa.concat_tables([curve("a", 0, [1, 1], 2, topic) for topic in ("birds", "sailing")])
    names = write_plots(str(tmp_path), table, SWEEP.schema.empty_table(), 2)
    assert len([name for name in names if "by-topic" not in name]) == 12
    assert not any("threshold" in name for name in names)
    assert {name for name in names if "by-topic" in name and name.endswith("svg")} == {
        "harvest-by-topic.svg",
        "precision-recall-by-topic.svg",
        "f-measure-recall-by-topic.svg",
    }
    one, two = (tmp_path / name for name in ("harvest.png", "harvest-by-topic.png"))
    # Width and height of a PNG stand at bytes 16 and 20.
    sizes = [np.frombuffer(path.read_bytes()[16:24], ">i4") for path in (one, two)]
    assert sizes[1].tolist() == [sizes[0][0], 2 * sizes[0][1]]
