"""The encoder's mirror: from a latent back to frames."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from peer_rl.networks.encoders import initialise
from peer_rl.networks.mlp import linear
from peer_rl.settings.encoder import EncoderConfig
from peer_rl.settings.networks import CriticConfig


class ConvDecoder(nn.Module):
    """A linear layer, then the transpose of each convolution in reverse order, ReLU after all but the last."""

    def __init__(
        self,
        observation: tuple[int, ...],
        latent: int,
        shape: EncoderConfig,
        linear_shape: CriticConfig,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        channels, sides = [observation[0], *shape.channels], [observation[1:]]
        for kernel, stride in zip(shape.kernels, shape.strides, strict=True):
            sides.append(tuple((side - kernel) // stride + 1 for side in sides[-1]))
        self.inputs = (channels[-1], *sides[-1])
        self.linear = linear(latent, channels[-1] * sides[-1][0] * sides[-1][1], linear_shape, rng)
        self.layers = nn.ModuleList()
        for index in reversed(range(len(shape.channels))):
            kernel, stride = shape.kernels[index], shape.strides[index]
            height, width = ((side - kernel) % stride for side in sides[index])  # what the stride left over
            layer = nn.ConvTranspose2d(
                channels[index + 1], channels[index], kernel, stride, output_padding=(height, width), device="meta"
            ).to_empty(device="cpu")
            initialise(layer, shape, rng)
            self.layers.append(layer)

    def forward(self, latent: Tensor) -> Tensor:
        """(B, latent) -> (B, C, H, W)."""
        x = torch.relu(self.linear(latent)).view(-1, *self.inputs)
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        frames: Tensor = self.layers[-1](x)
        return frames
