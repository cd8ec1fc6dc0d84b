"""The two theorems, on cases where their premises hold exactly, and cases that attain their constants.

Bellman, with one deterministic next pair: <phi, w> = r + gamma <phi', w>. So |r| <= |phi - gamma phi'| |w|,
and with |phi - gamma phi'|^2 written out, for any features,

    cos(phi, phi') <= (|phi|^2 + gamma^2 |phi'|^2 - r^2 / |w|^2) / (2 gamma |phi| |phi'|).
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from peer_rl.plugin.diagnostics import diagnose, drd

Array = NDArray[np.float64]
seeds = st.integers(0, 2**31)
gammas = st.floats(0.05, 1.0)


def sharp(gamma: float, r: Array | float, w: float) -> Array | float:
    """(1 + gamma^2) / (2 gamma) - r^2 / (2 gamma |w|^2), for features of length 1."""
    return (1 + gamma**2) / (2 * gamma) - r**2 / (2 * gamma * w**2)


def papers(gamma: float, r: Array | float, w: float) -> Array | float:
    """1 / gamma - r^2 / (2 |w|^2)."""
    return 1 / gamma - r**2 / (2 * w**2)


def general(gamma: float, r: Array, w: float, norm: Array, norm_next: Array) -> Array:
    bound: Array = (norm**2 + gamma**2 * norm_next**2 - r**2 / w**2) / (2 * gamma * norm * norm_next)
    return bound


class Chain:
    """A random finite MDP with deterministic transitions and policy, and its exact Q^pi by a linear solve."""

    def __init__(self, seed: int, gamma: float) -> None:
        self.random = np.random.default_rng(seed)
        states, actions = self.random.integers(2, 6, size=2)
        self.pairs = int(states * actions)
        next_state = self.random.integers(states, size=(states, actions))
        policy = self.random.integers(actions, size=states)
        # Pair (s, a) leads to pair (s', pi(s')).
        self.successor = (next_state * actions + policy[next_state]).reshape(-1)
        self.reward = self.random.normal(size=self.pairs) * 10 ** self.random.uniform(-2, 1)
        transition = np.eye(self.pairs)[self.successor]
        self.q: Array = np.linalg.solve(np.eye(self.pairs) - gamma * transition, self.reward)

    def features(self, unit: bool) -> tuple[Array, Array]:
        """phi (pairs, dim) and w with Q = <phi, w> exactly; |phi| = 1 if unit, which needs |w| >= max |Q|."""
        dim = int(self.random.integers(2, 9))
        direction = self.random.normal(size=dim)
        direction /= np.linalg.norm(direction)
        length = np.abs(self.q).max() * (1 + 10 ** self.random.uniform(-6, 1)) + 1e-9
        along = self.q / length
        across = self.random.normal(size=(self.pairs, dim))
        across -= np.outer(across @ direction, direction)
        if unit:
            across *= (np.sqrt(1 - along**2) / np.linalg.norm(across, axis=1))[:, None]
        return np.outer(along, direction) + across, length * direction


@settings(max_examples=200)
@given(seeds, st.floats(0.05, 0.99))
def test_the_sharp_bound_and_the_papers_hold_for_exact_q(seed: int, gamma: float) -> None:
    chain = Chain(seed, gamma)
    phi, w = chain.features(unit=True)
    np.testing.assert_allclose(np.linalg.norm(phi, axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(phi @ w, chain.reward + gamma * (phi @ w)[chain.successor], atol=1e-8, rtol=1e-8)
    cosine = (phi * phi[chain.successor]).sum(1)
    bound = sharp(gamma, chain.reward, float(np.linalg.norm(w)))
    assert (cosine <= bound + 1e-9).all()
    assert (bound <= papers(gamma, chain.reward, float(np.linalg.norm(w))) + 1e-12).all()
    value = drd(
        *(torch.from_numpy(x) for x in (phi, phi[chain.successor])),
        head_weight=torch.from_numpy(w),
        reward=torch.from_numpy(chain.reward),
        gamma=gamma,
    )
    assert (value <= 1e-9).all()


@settings(max_examples=200)
@given(seeds, st.floats(0.05, 0.99))
def test_the_general_bound_holds_for_features_of_any_length(seed: int, gamma: float) -> None:
    chain = Chain(seed, gamma)
    phi, w = chain.features(unit=False)
    norm = np.linalg.norm(phi, axis=1)
    phi_next, norm_next = phi[chain.successor], norm[chain.successor]
    cosine = (phi * phi_next).sum(1) / norm / norm_next
    bound = general(gamma, chain.reward, float(np.linalg.norm(w)), norm, norm_next)
    assert (cosine <= bound + 1e-8 * (1 + np.abs(bound))).all()
    report = diagnose(
        *(torch.from_numpy(x) for x in (phi, phi_next)),
        head_weight=torch.from_numpy(w),
        reward=torch.from_numpy(chain.reward),
        gamma=gamma,
    )
    assert report.bellman_gap == pytest.approx((cosine - bound).mean(), rel=1e-6, abs=1e-8)


def attaining(seed: int, gamma: float) -> tuple[Array, Array, Array, float]:
    """Unit phi and phi', w parallel to phi - gamma phi', and the reward that Bellman's equation asks for."""
    random = np.random.default_rng(seed)
    phi, phi_next = random.normal(size=(2, 5))
    phi, phi_next = phi / np.linalg.norm(phi), phi_next / np.linalg.norm(phi_next)
    w = random.uniform(0.1, 10) * random.choice([-1, 1]) * (phi - gamma * phi_next)
    return phi, phi_next, w, float(phi @ w - gamma * phi_next @ w)


@settings(max_examples=200)
@given(seeds, gammas)
def test_the_sharp_bound_is_attained_so_nothing_can_be_taken_off_it(seed: int, gamma: float) -> None:
    phi, phi_next, w, r = attaining(seed, gamma)
    bound = sharp(gamma, r, float(np.linalg.norm(w)))
    assert phi @ phi_next == pytest.approx(bound, abs=1e-9)
    assert phi @ phi_next > bound - 1e-3


@settings(max_examples=200)
@given(gammas, st.floats(-100, 100), st.floats(0.01, 100))
def test_the_papers_bound_is_a_relaxation_of_the_sharp_one(gamma: float, r: float, w: float) -> None:
    assert sharp(gamma, r, w) <= papers(gamma, r, w) * (1 + 1e-12) + 1e-9 * (1 + (r / w) ** 2)
    slack = (1 - gamma**2) / (2 * gamma) + r**2 / (2 * w**2) * (1 / gamma - 1)
    assert papers(gamma, r, w) - sharp(gamma, r, w) == pytest.approx(slack, rel=1e-6, abs=1e-9 * (1 + (r / w) ** 2))


def test_without_the_bellman_equation_the_bound_can_fail() -> None:
    phi = np.array([1.0, 0.0])
    w, gamma, r = np.array([1.0, 0.0]), 0.99, 2.0
    assert phi @ w != r + gamma * phi @ w
    assert phi @ phi > papers(gamma, r, float(np.linalg.norm(w)))


def test_the_numbers_on_the_theory_page() -> None:
    """Where the paper's property is free, and where no features can have it (gamma 0.99)."""
    gamma = 0.99
    one = torch.tensor([[1.0]], dtype=torch.float64)
    for cosine, ratio in ((1.0, 0.1421), (0.0, 1.4213), (-1.0, 2.0050)):
        for factor, violated in ((0.999, False), (1.001, True)):
            assert (cosine > papers(gamma, factor * ratio, 1.0)) == violated
    r = torch.zeros(1)
    assert drd(one, one, head_weight=one[0], reward=r, gamma=gamma).item() == pytest.approx(1 - 1 / gamma)


class FiniteClass:
    """Functions with an empirical loss each, and features whose inner products make PEER's term."""

    def __init__(self, seed: int, bound: float, beta: float) -> None:
        random = np.random.default_rng(seed)
        size, rows, dim = random.integers(2, 12), random.integers(1, 6), random.integers(1, 5)
        targets = random.normal(size=rows)
        values = targets + random.normal(size=(size, rows)) * 10 ** random.uniform(-3, 0)
        phi, phi_next = random.normal(size=(2, size, rows, dim))
        phi, phi_next = (x * self._lengths(random, x, bound) for x in (phi, phi_next))
        self.loss: Array = ((values - targets) ** 2).mean(1)
        self.peer: Array = beta * (phi * phi_next).sum(-1).mean(1)

    @staticmethod
    def _lengths(random: np.random.Generator, x: Array, bound: float) -> Array:
        lengths: Array = bound * random.uniform(size=x.shape[:-1]) ** 0.1 / np.linalg.norm(x, axis=-1)
        return lengths[..., None]

    def excess(self) -> float:
        """How much worse the regularised minimiser fits than the best of the class."""
        chosen = int(np.argmin(self.loss + self.peer))
        return float(self.loss[chosen] - self.loss.min())


@settings(max_examples=300)
@given(seeds, st.floats(0.01, 10), st.floats(1e-5, 10))
def test_peer_costs_at_most_two_beta_g_squared(seed: int, bound: float, beta: float) -> None:
    assert FiniteClass(seed, bound, beta).excess() <= 2 * beta * bound**2 * (1 + 1e-9)


@pytest.mark.parametrize("beta", [5e-4, 1.0])
@pytest.mark.parametrize("bound", [0.5, 3.0])
def test_two_is_the_right_constant(beta: float, bound: float) -> None:
    """Inner products +G^2 and -G^2: the worse fit wins until the losses differ by 2 beta G^2."""
    pair = FiniteClass(0, bound, beta)
    phi = np.array([[bound, 0.0], [bound, 0.0]])
    phi_next = np.array([[bound, 0.0], [-bound, 0.0]])
    pair.peer = beta * (phi * phi_next).sum(-1)
    pair.loss = np.array([0.0, 1.99 * beta * bound**2])
    assert 1.9 * beta * bound**2 < pair.excess() < 2 * beta * bound**2
    pair.loss[1] = 2.01 * beta * bound**2
    assert pair.excess() == 0
