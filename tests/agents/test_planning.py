"""The planner on returns whose maximum is known, as MPPI and as the cross-entropy method."""

from dataclasses import replace

import pytest
import torch

from peer_rl.agents.planning import plan, shifted
from peer_rl.errors import ConfigError
from peer_rl.settings.td_mpc import PlannerConfig

MPPI = PlannerConfig(horizon=3, samples=256, elites=32, iterations=8, temperature=5.0)
CEM = PlannerConfig(horizon=3, samples=256, elites=32, iterations=10, temperature=0.0, momentum=0.0, std_start=1.0)
BEST = torch.tensor([[0.7, -0.4], [0.0, 0.9], [-0.8, 0.1]])
START = torch.zeros(3, 2)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def concave(actions: torch.Tensor) -> torch.Tensor:
    assert actions.abs().max() <= 1
    return -(actions - BEST.unsqueeze(1)).square().sum((0, 2))


@pytest.mark.parametrize("config", [MPPI, CEM], ids=["mppi", "cem"])
@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_maximum_of_a_concave_return(config, seed):
    found = plan(concave, START, config, rng(seed))
    torch.testing.assert_close(found.mean, BEST, atol=0.05, rtol=0)
    torch.testing.assert_close(found.draw(rng(seed)), BEST, atol=0.15, rtol=0)
    assert found.elites.shape == (3, 32, 2)
    assert found.weights.sum().item() == pytest.approx(1)
    assert (concave(found.elites).diff() <= 0).all(), "best first"


@pytest.mark.parametrize("config", [MPPI, CEM], ids=["mppi", "cem"])
def test_a_maximum_outside_the_actions_is_found_at_their_edge(config):
    found = plan(lambda actions: actions.sum((0, 2)), START, config, rng())
    assert found.mean.min() > 0.9
    assert found.elites.max() <= 1


def test_broken_searches_do_not_find_it():
    """Turned upside down, or stopped after one iteration, the mean is far from the maximum."""
    upside_down = plan(lambda actions: -concave(actions), START, MPPI, rng())
    once = plan(concave, START, replace(MPPI, iterations=1), rng())
    for found in (upside_down, once):
        assert (found.mean - BEST).abs().max() > 0.1


def test_equal_weights_without_momentum_are_the_cross_entropy_method():
    """One iteration by hand: mean and deviation of the best, unweighted."""
    config = replace(CEM, iterations=1)
    found = plan(concave, START, config, rng())
    noise = torch.randn(3, 256, 2, generator=rng())
    candidates = noise.clamp(-1, 1)
    best = candidates[:, concave(candidates).argsort(descending=True)[:32]]
    torch.testing.assert_close(found.mean, best.mean(1))
    torch.testing.assert_close(found.std, best.std(1, correction=0))
    assert found.weights.tolist() == [1 / 32] * 32


def test_a_good_proposal_is_taken_in_every_iteration():
    config = replace(MPPI, samples=8, elites=4, iterations=3, temperature=1e6)
    found = plan(concave, START, config, rng(), proposals=BEST.unsqueeze(1))
    torch.testing.assert_close(found.elites[:, 0], BEST)
    torch.testing.assert_close(found.draw(rng()), BEST)


def test_the_deviation_never_falls_below_its_least():
    assert plan(concave, START, MPPI, rng(), least_std=0.3).std.min() >= 0.3
    assert plan(concave, START, MPPI, rng()).std.max() < 0.3


def test_elites_are_drawn_with_the_probability_of_their_weight():
    found = plan(concave, START, replace(MPPI, elites=4, iterations=1, temperature=1.0), rng())
    source, counts = rng(1), torch.zeros(4)
    for _ in range(4_000):
        drawn = found.draw(source)
        counts += (found.elites == drawn.unsqueeze(1)).all(2).all(0)
    torch.testing.assert_close(counts / 4_000, found.weights, atol=0.03, rtol=0)


def test_values_that_are_not_finite_make_the_plan_nan():
    found = plan(lambda actions: actions.sum((0, 2)).log(), START, MPPI, rng())
    assert found.mean.isnan().all()
    assert found.draw(rng()).isnan().all()


def test_the_number_of_draws_depends_on_shapes_alone():
    one, other = rng(), rng()
    plan(concave, START, MPPI, one)
    plan(lambda actions: actions.sum((0, 2)), BEST, MPPI, other, least_std=0.5)
    assert torch.equal(one.get_state(), other.get_state())


def test_a_plan_one_step_later():
    mean = torch.tensor([[1.0], [2.0], [3.0]])
    assert shifted(mean, 3).flatten().tolist() == [2, 3, 0]
    assert shifted(mean, 4).flatten().tolist() == [2, 3, 0, 0], "the horizon has grown"
    assert shifted(mean, 1).flatten().tolist() == [2]


def test_more_elites_than_samples_are_refused():
    with pytest.raises(ConfigError, match=r"elites must be at most .*samples, 8, but is 9"):
        PlannerConfig(samples=8, elites=9)
