"""LayerNorm critics: the control that shows whether PEER does more than a normalised critic would."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from torch import Tensor, nn
from torch.nn import functional

from peer_rl.errors import ConfigError
from peer_rl.sb3.hooks import critic_and_target, last_layers


class LayerNormReLU(nn.Module):
    """ReLU of the normalised pre-activation: layer normalisation without weights, so any layer size fits."""

    def forward(self, x: Tensor) -> Tensor:
        """relu((x - mean) / deviation), over the features of each row."""
        return functional.relu(functional.layer_norm(x, x.shape[-1:]))


def layer_norm_kwargs(**policy_kwargs: Any) -> dict[str, Any]:
    """``policy_kwargs`` with layer normalisation before every hidden activation, of critic and actor.

    Stable-Baselines3 has one ``activation_fn`` for both. For the critic alone: ``normalise_critic(model)``.
    """
    return {**policy_kwargs, "activation_fn": LayerNormReLU}


def normalise_critic(model: BaseAlgorithm) -> BaseAlgorithm:
    """Put layer normalisation before every ReLU of a new model's critics, online and target; returns the model.

    The first weights and the random draws stay those of the plain model. The normalisation has no weights, and a zip
    does not keep it: call this again after ``load``.
    """
    for critic in critic_and_target(model):
        last_layers(critic)  # refuses a critic of another form
        replaced = 0
        networks = getattr(critic, "q_networks", None) or [
            getattr(critic, name) for name in ("q_net", "quantile_net") if hasattr(critic, name)
        ]
        for network in networks:
            for name, layer in network.named_children():
                if isinstance(layer, nn.ReLU):
                    setattr(network, name, LayerNormReLU())
                    replaced += 1
        if not replaced:
            raise ConfigError(
                f"{type(critic).__name__} has no nn.ReLU between its layers, so layer-norm has nowhere to go: "
                "write the normalised critic into the script"
            )
    return model
