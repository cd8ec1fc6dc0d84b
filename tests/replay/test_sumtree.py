"""The sum tree against plain numpy, and at the edges where rounding bites."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peer_rl.replay.sumtree import SumTree


def tree_of(leaves: list[float]) -> SumTree:
    tree = SumTree(len(leaves))
    tree.set(np.arange(len(leaves)), np.array(leaves))
    return tree


WEIGHTS = st.one_of(st.just(0.0), st.floats(1e-8, 1e6))


@given(
    leaves=st.integers(1, 40),
    changes=st.lists(
        st.tuples(st.lists(st.integers(0, 39), min_size=1, max_size=8), st.integers(0, 2**32)), max_size=8
    ),
)
@settings(max_examples=100, deadline=None)
def test_sums_after_any_changes_are_those_of_the_leaves(leaves, changes):
    tree, plain = SumTree(leaves), [0.0] * leaves
    for slots, seed in changes:
        values = np.random.default_rng(seed).exponential(size=len(slots))
        tree.set(np.array(slots) % leaves, values)
        for slot, value in zip(slots, values, strict=True):  # of a slot that comes twice, the last value counts
            plain[slot % leaves] = value
        if seed % 2:
            assert tree.total == pytest.approx(sum(plain))
    assert tree.leaves.tolist() == plain
    assert tree.total == pytest.approx(sum(plain))
    again = SumTree(leaves)
    again.rebuild(np.array(plain))
    assert again._nodes.tobytes() == tree._nodes.tobytes(), "rebuilt from its leaves it is the same bit for bit"


@given(leaves=st.lists(WEIGHTS, min_size=1, max_size=40), shares=st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_the_leaf_found_is_where_numpys_cumulative_sum_puts_it(leaves, shares):
    if not any(leaves):
        leaves[0] = 1.0
    tree = tree_of(leaves)
    targets = np.array(shares) * tree.total
    ends = np.cumsum(leaves)
    for slot, target in zip(tree.find(targets), targets, strict=True):
        assert leaves[slot] > 0
        assert ends[slot] - leaves[slot] <= target * (1 + 1e-9) + 1e-12
        assert target <= ends[slot] * (1 + 1e-9) + 1e-12


@given(leaves=st.lists(WEIGHTS, min_size=1, max_size=70))
@settings(max_examples=300, deadline=None)
def test_no_leaf_of_zero_is_found_even_past_the_end(leaves):
    """A target can be rounded to the whole sum, or just past it: Rainbow's IndexError (PR #81)."""
    leaves[len(leaves) // 2] = 0.1
    tree = tree_of(leaves)
    targets = np.array([0.0, np.nextafter(tree.total, 0), tree.total, np.nextafter(tree.total, np.inf), 2 * tree.total])
    for slot in tree.find(targets):
        assert leaves[slot] > 0


@pytest.mark.parametrize("size", [1, 2, 3, 64, 65])
def test_one_leaf_among_zeros_is_always_found(size):
    for slot in (0, size // 2, size - 1):
        leaves = [0.0] * size
        leaves[slot] = 0.3
        assert set(tree_of(leaves).find(np.linspace(0, 0.3, 50))) == {slot}


def test_frequencies_are_those_of_numpys_choice():
    rng = np.random.default_rng(0)
    leaves = rng.exponential(size=37) * (rng.random(37) < 0.7)
    tree, draws = tree_of(leaves.tolist()), 200_000
    found = np.bincount(tree.find(rng.random(draws) * tree.total), minlength=37) / draws
    chosen = np.bincount(rng.choice(37, draws, p=leaves / leaves.sum()), minlength=37) / draws
    np.testing.assert_allclose(found, leaves / leaves.sum(), atol=5e-3)
    np.testing.assert_allclose(found, chosen, atol=5e-3)


def test_memory_is_as_printed():
    for leaves in (1, 2, 3, 100, 128, 129):
        assert SumTree(leaves)._nodes.nbytes == SumTree.bytes_for(leaves)
