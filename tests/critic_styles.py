"""Critics written as others write them."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

OBS, ACTION, DIM, ROWS = 3, 2, 8, 6


def mlp(outputs: int = 1, last: Callable[[], nn.Module] = nn.ReLU, inputs: int = OBS + ACTION) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, DIM), nn.ReLU(), nn.Linear(DIM, DIM), last(), nn.Linear(DIM, outputs))


class CleanRLStyle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(OBS + ACTION, DIM), nn.Linear(DIM, DIM), nn.Linear(DIM, 1)

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        hidden = torch.relu(self.fc1(torch.cat([obs, action], 1)))
        return self.fc3(torch.relu(self.fc2(hidden)))


class SB3Style(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_networks = []
        for i in range(2):
            net = mlp()
            self.add_module(f"qf{i}", net)
            self.q_networks.append(net)

    def forward(self, obs: Tensor, action: Tensor) -> tuple[Tensor, ...]:
        joined = torch.cat([obs, action], dim=1)
        return tuple(net(joined) for net in self.q_networks)


class TianshouStyle(nn.Module):
    """A preprocessing net that returns a tuple, then a small MLP, flattened at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Sequential(nn.Linear(DIM, 1))
        self.preprocess = nn.Sequential(nn.Linear(OBS + ACTION, DIM), nn.ReLU())

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        return self.last(self.preprocess(torch.cat([obs, action], 1))).flatten()


class TorchRLStyle(nn.Module):
    """Takes and returns a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.module = mlp()

    def forward(self, td: dict[str, Tensor]) -> dict[str, Tensor]:
        value = self.module(torch.cat([td["observation"], td["action"]], -1))
        return {**td, "state_action_value": value}


class Joined(nn.Module):
    """Twin heads whose values leave concatenated, stacked or as their minimum."""

    def __init__(self, join: Callable[[list[Tensor]], Tensor]) -> None:
        super().__init__()
        self.q1, self.q2, self.join = mlp(), mlp(), join

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        joined = torch.cat([obs, action], 1)
        return self.join([self.q1(joined), self.q2(joined)])


class Transformer(nn.Module):
    """Attention over a history of steps, with learned positions; the value of the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(OBS + ACTION, DIM)
        self.positions = nn.Parameter(torch.zeros(4, DIM))
        layer = nn.TransformerEncoderLayer(DIM, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(DIM, 1)

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        steps = self.embed(torch.cat([obs, action], -1)).unsqueeze(1).expand(-1, 4, -1)
        return self.head(self.blocks(steps + self.positions)[:, -1])


class SimBa(nn.Module):
    """A residual block and a LayerNorm before the head."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(OBS + ACTION, DIM)
        self.block = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 4 * DIM), nn.ReLU(), nn.Linear(4 * DIM, DIM))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, 1)

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        x = self.embed(torch.cat([obs, action], -1))
        return self.head(self.norm(x + self.block(x)))


class SimNorm(nn.Module):
    """TD-MPC2's simplices: a softmax over groups of four features."""

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, 4)).softmax(-1).flatten(-2)


class OfOne(nn.Module):
    """A critic of (obs, action) made of a network of their concatenation."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        return self.network(torch.cat([obs, action], -1))


class Lazy(OfOne):
    def __init__(self) -> None:
        super().__init__(nn.Sequential(nn.LazyLinear(DIM), nn.ReLU(), nn.LazyLinear(1)))


class CrossQ(OfOne):
    """Batch normalisation; online and next pairs pass jointly."""

    def __init__(self) -> None:
        layers = (nn.Linear(OBS + ACTION, DIM), nn.BatchNorm1d(DIM), nn.ReLU(), nn.Linear(DIM, 1))
        super().__init__(nn.Sequential(nn.BatchNorm1d(OBS + ACTION), *layers))


class Five(nn.Module):
    """Five critics in a list; their values leave as a list, stacked at the front or at the back."""

    def __init__(self, join: Callable[[list[Tensor]], object] = list) -> None:
        super().__init__()
        self.critics, self.join = nn.ModuleList(mlp() for _ in range(5)), join

    def forward(self, obs: Tensor, action: Tensor) -> object:
        joined = torch.cat([obs, action], 1)
        return self.join([critic(joined) for critic in self.critics])
