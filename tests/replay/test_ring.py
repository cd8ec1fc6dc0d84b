"""The ring: rows keep their numbers, come back from segments, and are refused once they are gone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peer_rl.replay.store import Ring, row_bytes


@given(total=st.integers(1, 30), capacity=st.integers(1, 12), cuts=st.lists(st.integers(0, 30), max_size=4))
@settings(max_examples=80, deadline=None)
def test_a_ring_restored_from_segments_is_the_same_ring(total, capacity, cuts):
    """Segments are cut anywhere; only those that still hold rows of the ring are needed."""
    ring, segments, saved = Ring(capacity, {"x": ((2,), np.float32)}), [], 0
    for i in range(total):
        ring.append({"x": [i, -i]})
        if i in cuts or i == total - 1:
            start = max(saved, ring.oldest)
            segments.append((start, ring.rows(start, ring.total)))
            saved = ring.total
    again = Ring(capacity, {"x": ((2,), np.float32)})
    for start, rows in segments:
        if start + len(rows["x"]) > ring.oldest:
            again.restore(start, rows)
    assert again.total == ring.total
    np.testing.assert_array_equal(again.rows(again.oldest, total)["x"], ring.rows(ring.oldest, total)["x"])


def test_rows_that_are_gone_are_refused():
    ring = Ring(3, {"x": ((), np.float32)})
    for i in range(5):
        ring.append({"x": i})
    with pytest.raises(IndexError, match="rows 1 to 5"):
        ring.rows(1, 5)


def test_only_the_newest_row_is_amended():
    ring = Ring(3, {"x": ((), np.float32), "y": ((), np.float32)})
    for i in range(5):
        ring.append({"x": i, "y": i})
    ring.amend({"x": 40})
    rows = ring.rows(2, 5)
    assert rows["x"].tolist() == [2, 3, 40]
    assert rows["y"].tolist() == [2, 3, 4]


def test_a_rows_bytes_are_those_of_its_columns():
    columns = {"frame": ((3, 5, 5), np.uint8), "action": ((2,), "float32"), "last": ((), np.bool_)}
    ring = Ring(10, columns)
    assert row_bytes(columns) == ring.row_bytes == 75 + 8 + 1
    assert sum(column.nbytes for column in ring.columns.values()) == 10 * ring.row_bytes
