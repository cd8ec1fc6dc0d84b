"""PEER in a single-file TD3: two imports, phi returned by the critic, and one line in its loss.

    python examples/plug_into_your_agent.py --env Pendulum-v1 --steps 10000 --seed 0
    python examples/plug_into_your_agent.py --env Pendulum-v1 --steps 10000 --seed 0 --beta 0     # plain TD3

Everything else is TD3 (Fujimoto et al., 2018). Search for "PEER".
"""

import argparse
import copy
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from peer_rl import diagnose, peer_loss  # PEER


class Batch(NamedTuple):
    """Transitions; ``terminated`` is 1 where the episode ended and 0 where it was truncated."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    next_obs: Tensor
    terminated: Tensor


class QNetwork(nn.Module):
    """Q(s, a), and phi: the input of the last layer, which PEER reads."""

    def __init__(self, obs_size: int, action_size: int, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(obs_size + action_size, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 1)

    def forward(self, obs: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Q, (batch,), and phi, (batch, width)."""
        hidden = torch.relu(self.fc1(torch.cat([obs, action], 1)))
        phi = torch.relu(self.fc2(hidden))
        return self.fc3(phi).squeeze(-1), phi


class Actor(nn.Module):
    """An action in [-1, 1]."""

    def __init__(self, obs_size: int, action_size: int, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(obs_size, width)
        self.fc2 = nn.Linear(width, width)
        self.fc_mu = nn.Linear(width, action_size)

    def forward(self, obs: Tensor) -> Tensor:
        """(batch, actions)."""
        return torch.tanh(self.fc_mu(torch.relu(self.fc2(torch.relu(self.fc1(obs))))))


class TD3:
    """Twin critics, a delayed actor, a smoothed target."""

    def __init__(self, obs_size: int, action_size: int, args: argparse.Namespace) -> None:
        self.args = args
        self.actor = Actor(obs_size, action_size, args.width)
        self.critics = nn.ModuleList(QNetwork(obs_size, action_size, args.width) for _ in range(2))
        self.actor_target, self.critics_target = copy.deepcopy(self.actor), copy.deepcopy(self.critics)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), args.learning_rate)
        self.critic_optimizer = torch.optim.Adam(self.critics.parameters(), args.learning_rate)
        self.updates = 0

    def look_ahead(self, batch: Batch, noise: torch.Generator) -> tuple[Tensor, Tensor]:
        """The TD target, (batch,), and the target critics' phi at the same next state and action, (2, batch, width)."""
        smoothing = 0.2 * torch.randn(batch.action.shape, generator=noise)
        with torch.no_grad():
            next_action = (self.actor_target(batch.next_obs) + smoothing.clamp(-0.5, 0.5)).clamp(-1, 1)
            next_q, next_phi = evaluate_critics(self.critics_target, batch.next_obs, next_action)
            return batch.reward + self.args.gamma * (1 - batch.terminated) * next_q.amin(0), next_phi

    def update(self, batch: Batch, noise: torch.Generator) -> None:
        """One step of both critics; every second time also of the actor and all targets."""
        target, phi_next = self.look_ahead(batch, noise)
        q, phi = evaluate_critics(self.critics, batch.obs, batch.action)
        critic_loss = (q - target).square().mean(1).sum()
        critic_loss = critic_loss + peer_loss(phi, phi_next, beta=self.args.beta)  # PEER: the one line
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        self.updates += 1
        if self.updates % 2 == 0:
            actor_loss = -self.critics[0](batch.obs, self.actor(batch.obs))[0].mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()
            for network, follower in ((self.actor, self.actor_target), (self.critics, self.critics_target)):
                for parameter, follows in zip(network.parameters(), follower.parameters(), strict=True):
                    follows.data.lerp_(parameter.data, self.args.tau)


def evaluate_critics(critics: nn.ModuleList, obs: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """Both critics' values, (2, batch), and features, (2, batch, width)."""
    q, phi = zip(*(critic(obs, action) for critic in critics), strict=True)
    return torch.stack(q), torch.stack(phi)


class Replay:
    """The latest transitions."""

    def __init__(self, size: int, obs_size: int, action_size: int) -> None:
        shapes = {"obs": (obs_size,), "action": (action_size,), "reward": (), "next_obs": (obs_size,), "terminated": ()}
        self.columns = {name: np.zeros((size, *shape), np.float32) for name, shape in shapes.items()}
        self.size, self.added = size, 0

    def add(self, **row: object) -> None:
        """Store one transition."""
        for name, value in row.items():
            self.columns[name][self.added % self.size] = value
        self.added += 1

    def sample(self, count: int, random: np.random.Generator) -> Batch:
        """Draw transitions uniformly."""
        rows = random.integers(min(self.added, self.size), size=count)
        return Batch(**{name: torch.from_numpy(column[rows]) for name, column in self.columns.items()})


def make_env(name: str) -> gym.Env:
    """An environment whose actions are in [-1, 1]."""
    return gym.wrappers.RescaleAction(gym.make(name), np.float32(-1.0), np.float32(1.0))


@torch.no_grad()
def evaluate(agent: TD3, name: str, episodes: int, seed: int) -> float:
    """Mean return without noise, in an environment of its own."""
    env, returns = make_env(name), []
    for episode in range(episodes):
        obs, _ = env.reset(seed=1_000_000 + 1_000 * seed + episode)
        total, over = 0.0, False
        while not over:
            action = agent.actor(torch.as_tensor(obs, dtype=torch.float32)[None])[0].numpy()
            obs, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    env.close()
    return float(np.mean(returns))


def report(agent: TD3, replay: Replay, args: argparse.Namespace, step: int, random: np.random.Generator) -> None:
    """Print the evaluation and the health of the critic's representation."""
    score = evaluate(agent, args.env, args.eval_episodes, args.seed)
    batch = replay.sample(args.batch_size, random)
    target, phi_next = agent.look_ahead(batch, torch.Generator().manual_seed(step))
    health = diagnose(evaluate_critics(agent.critics, batch.obs, batch.action)[1], phi_next)  # PEER: its effect on phi
    shown = f"cosine {health.cosine:.3f}, rank {health.effective_rank:.0f}, dormant {health.dormant_fraction:.2f}"
    print(f"step {step:>7}  return {score:9.2f}  mean target {target.mean():8.2f}  {shown}", flush=True)


def train(args: argparse.Namespace) -> TD3:
    """Act, store, learn, evaluate."""
    torch.manual_seed(args.seed)
    random, noise = np.random.default_rng(args.seed), torch.Generator().manual_seed(args.seed)
    looking = np.random.default_rng(args.seed + 1)  # a separate stream: evaluation changes no weight
    env = make_env(args.env)
    obs_size, action_size = env.observation_space.shape[0], env.action_space.shape[0]
    agent, replay = TD3(obs_size, action_size, args), Replay(args.steps, obs_size, action_size)
    obs, _ = env.reset(seed=args.seed)
    for step in range(1, args.steps + 1):
        action = random.uniform(-1, 1, action_size).astype(np.float32)
        if step > args.random_steps:
            with torch.no_grad():
                action = agent.actor(torch.as_tensor(obs, dtype=torch.float32)[None])[0].numpy()
            action = (action + 0.1 * random.standard_normal(action_size, np.float32)).clip(-1, 1)
        next_obs, reward, terminated, truncated, _ = env.step(action)
        replay.add(obs=obs, action=action, reward=reward, next_obs=next_obs, terminated=terminated)
        obs = env.reset()[0] if terminated or truncated else next_obs
        if step > args.random_steps:
            agent.update(replay.sample(args.batch_size, random), noise)
        if step % args.eval_every == 0:
            report(agent, replay, args, step, looking)
    env.close()
    return agent


def read_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The settings; the defaults are TD3's."""
    parser = argparse.ArgumentParser(description="TD3 with PEER, in one file")
    parser.add_argument("--env", default="Pendulum-v1")
    parser.add_argument("--beta", type=float, default=5e-4, help="PEER's weight; 0 is plain TD3")
    for name, default in {"seed": 0, "steps": 10_000, "random-steps": 1_000, "batch-size": 256, "width": 256}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in {"eval-every": 1_000, "eval-episodes": 10}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in {"gamma": 0.99, "tau": 0.005, "learning-rate": 3e-4}.items():
        parser.add_argument(f"--{name}", type=float, default=default)
    return parser.parse_args(words)


if __name__ == "__main__":
    train(read_arguments())
