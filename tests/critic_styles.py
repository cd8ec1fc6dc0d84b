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
        self.a, self.b, self.join = mlp(), mlp(), join

    def forward(self, obs: Tensor, action: Tensor) -> Tensor:
        joined = torch.cat([obs, action], 1)
        return self.join([self.a(joined), self.b(joined)])
