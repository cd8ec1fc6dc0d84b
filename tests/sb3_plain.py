"""Gradient steps of five algorithms with PEER as a term of the loss, written out; the oracle for the hooks.

Each takes a stock agent, does one step on a batch and returns the term's value. Random draws come in
Stable-Baselines3's order.
"""

import torch
import torch.nn.functional as F
from sb3_contrib.common.utils import quantile_huber_loss
from stable_baselines3.common.utils import polyak_update
from torch import Tensor, nn


def run(critic: nn.Module, obs: Tensor, action: Tensor | None = None) -> tuple[list[Tensor], Tensor]:
    """Outputs and features (heads, batch, dim) of a critic."""
    shared = getattr(critic, "share_features_extractor", False)
    with torch.set_grad_enabled(torch.is_grad_enabled() and not shared):
        x = critic.extract_features(obs, critic.features_extractor)
    if action is not None:
        x = torch.cat([x, action], 1)
    networks = getattr(critic, "q_networks", None) or [getattr(critic, "q_net", None) or critic.quantile_net]
    phi = torch.stack([network[:-1](x) for network in networks])
    return [network[-1](features) for network, features in zip(networks, phi, strict=True)], phi


def descend(optimizer: torch.optim.Optimizer, loss: Tensor, clip: tuple[nn.Module, float | None] | None = None) -> None:
    optimizer.zero_grad()
    loss.backward()
    if clip is not None and clip[1] is not None:
        torch.nn.utils.clip_grad_norm_(clip[0].parameters(), clip[1])
    optimizer.step()


def discount(model, batch) -> Tensor:
    return (1 - batch.dones) * (model.gamma if batch.discounts is None else batch.discounts)


def td3(model, batch, term) -> float:
    with torch.no_grad():
        noise = torch.empty_like(batch.actions).normal_(0, model.target_policy_noise)
        noise = noise.clamp(-model.target_noise_clip, model.target_noise_clip)
        action = (model.actor_target(batch.next_observations) + noise).clamp(-1, 1)
        q_next, phi_next = run(model.critic_target, batch.next_observations, action)
        y = batch.rewards + discount(model, batch) * torch.stack(q_next).amin(0)
    q, phi = run(model.critic, batch.observations, batch.actions)
    value = term(phi, phi_next)
    descend(model.critic.optimizer, sum(F.mse_loss(head, y) for head in q) + value)
    model._n_updates += 1
    if model._n_updates % model.policy_delay == 0:
        q, _ = run(model.critic, batch.observations, model.actor(batch.observations))
        descend(model.actor.optimizer, -q[0].mean())
        polyak_update(model.critic.parameters(), model.critic_target.parameters(), model.tau)
        polyak_update(model.actor.parameters(), model.actor_target.parameters(), model.tau)
    return value.item()


def entropic(model, batch, term, critic_loss, actor_value, next_value) -> float:
    """What SAC and TQC share."""
    action, log_probability = model.actor.action_log_prob(batch.observations)
    log_probability = log_probability[:, None]
    temperature = model.log_ent_coef.detach().exp()
    surplus = (log_probability + model.target_entropy).detach()
    descend(model.ent_coef_optimizer, -(model.log_ent_coef * surplus).mean())
    with torch.no_grad():
        next_action, next_log_probability = model.actor.action_log_prob(batch.next_observations)
        outputs, phi_next = run(model.critic_target, batch.next_observations, next_action)
        soft = next_value(outputs) - temperature * next_log_probability[:, None]
        y = batch.rewards + discount(model, batch) * soft
    outputs, phi = run(model.critic, batch.observations, batch.actions)
    value = term(phi, phi_next)
    descend(model.critic.optimizer, critic_loss(outputs, y) + value)
    outputs, _ = run(model.critic, batch.observations, action)
    descend(model.actor.optimizer, (temperature * log_probability - actor_value(outputs)).mean())
    polyak_update(model.critic.parameters(), model.critic_target.parameters(), model.tau)
    return value.item()


def sac(model, batch, term) -> float:
    def half_squares(q, y):
        return 0.5 * sum(F.mse_loss(head, y) for head in q)

    def smallest(q):
        return torch.stack(q).amin(0)

    return entropic(model, batch, term, half_squares, smallest, smallest)


def tqc(model, batch, term) -> float:
    def huber(quantiles, y):
        return quantile_huber_loss(torch.stack(quantiles, 1), y[:, None], sum_over_quantiles=False)

    def average(quantiles):
        return torch.stack(quantiles, 1).mean(2).mean(1, keepdim=True)

    def truncated(quantiles):
        pooled = torch.cat(quantiles, 1).sort(1).values
        return pooled[:, : pooled.shape[1] - len(quantiles) * model.top_quantiles_to_drop_per_net]

    return entropic(model, batch, term, huber, average, truncated)


def dqn(model, batch, term) -> float:
    with torch.no_grad():
        q_next, phi_next = run(model.q_net_target, batch.next_observations)
        y = batch.rewards + discount(model, batch) * q_next[0].amax(1, keepdim=True)
    q, phi = run(model.q_net, batch.observations)
    value = term(phi, phi_next)
    loss = F.smooth_l1_loss(q[0].gather(1, batch.actions.long()), y) + value
    descend(model.policy.optimizer, loss, clip=(model.policy, model.max_grad_norm))
    return value.item()


def qrdqn(model, batch, term) -> float:
    rows = torch.arange(len(batch.actions))
    shape = (len(rows), model.n_quantiles, int(model.action_space.n))
    with torch.no_grad():
        outputs, phi_next = run(model.quantile_net_target, batch.next_observations)
        quantiles = outputs[0].reshape(shape)
        y = batch.rewards + discount(model, batch) * quantiles[rows, :, quantiles.mean(1).argmax(1)]
    outputs, phi = run(model.quantile_net, batch.observations)
    value = term(phi, phi_next)
    chosen = outputs[0].reshape(shape)[rows, :, batch.actions[:, 0].long()]
    loss = quantile_huber_loss(chosen, y, sum_over_quantiles=True) + value
    descend(model.policy.optimizer, loss, clip=(model.policy, model.max_grad_norm))
    return value.item()


STEPS = {"TD3": td3, "SAC": sac, "DQN": dqn, "TQC": tqc, "QRDQN": qrdqn}
