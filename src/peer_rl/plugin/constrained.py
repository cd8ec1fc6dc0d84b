"""CosinePEER with a beta that adapts until the mean cosine reaches a target."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from peer_rl.plugin.features import DEFAULT_BETA, Features, check_beta
from peer_rl.plugin.terms import Regularizer

TARGET, RATE = 0.9, 0.001
LOWEST, HIGHEST = 1e-6, 1.0


class ConstrainedPEER(Regularizer):
    """beta sg(|phi| |phi'|) cos(phi, sg phi'), CosinePEER's term, with log beta += rate (mean cosine - target).

    `adapt`, called once after each update, moves beta within [1e-6, 1] by the cosine of the latest call. The mean is
    over rows and heads where neither phi nor phi' is 0; with none left beta stays. beta and cosine are tensors on
    phi's device, so that the CPU does not wait for an accelerator.
    """

    name = "cosine-peer"

    def __init__(self, target: float = TARGET, rate: float = RATE, *, beta: float = DEFAULT_BETA) -> None:
        super().__init__(beta)
        if not -1 <= target <= 1:
            raise ValueError(f"target must be a cosine, in [-1, 1], not {target!r}")
        if not (math.isfinite(rate) and rate >= 0):
            raise ValueError(f"rate must be finite and at least 0, not {rate!r}")
        self.target, self.rate = float(target), float(rate)
        self._log_beta = _logarithm(beta)
        self._cosine: Tensor | None = None

    @property
    def beta(self) -> float:
        """Current weight of the term; reading it waits for the device."""
        return self._log_beta.exp().item()

    @beta.setter
    def beta(self, beta: float) -> None:
        self._log_beta = _logarithm(beta).to(self._log_beta.device)

    @property
    def is_off(self) -> bool:
        """Never: beta stays above 0."""
        return False

    def loss(self, features: Features) -> Tensor:
        """CosinePEER's term with the current beta; stores the batch's cosine for `adapt`."""
        phi, phi_next = features.phi, features.phi_next.detach()
        if phi.dtype in (torch.float16, torch.bfloat16):
            phi, phi_next = phi.float(), phi_next.float()
        self._log_beta = self._log_beta.to(phi.device)
        length, length_next = (torch.linalg.vector_norm(x, dim=-1) for x in (phi, phi_next))
        norm = torch.where(length == 0, 1.0, length)
        inner = (phi * phi_next).sum(-1) * (norm.detach() / norm)  # (*leading, batch)
        with torch.no_grad():
            cosines = inner / length / length_next  # 0 / 0, and so NaN, where there is no direction
            if features.weight is not None:
                cosines = torch.where(features.weight > 0, cosines, math.nan)
            self._cosine = torch.where(cosines.isnan().all(), self.target, cosines.nanmean())
        if features.weight is not None:
            inner = inner * features.weight
        return self._log_beta.exp() * inner.sum() / phi.shape[-2]

    @torch.no_grad()
    def adapt(self) -> dict[str, Tensor]:
        """Move beta by the latest call's cosine; return both, as they were in that call."""
        if self._cosine is None:
            raise RuntimeError("adapt() comes after an update: call the regularizer on its features first")
        beta, cosine, self._cosine = self._log_beta.exp(), self._cosine, None
        moved = self._log_beta + self.rate * (cosine - self.target)
        self._log_beta = moved.float().clamp(math.log(LOWEST), math.log(HIGHEST))
        return {"beta": beta, "cosine": cosine}

    def state_dict(self) -> dict[str, Any]:
        """The logarithm of beta."""
        return {"log_beta": self._log_beta}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of ``state_dict``."""
        self._log_beta = state["log_beta"].to(self._log_beta.device)

    def __repr__(self) -> str:
        return f"ConstrainedPEER(target={self.target:g}, rate={self.rate:g}, beta={self.beta:g})"


def _logarithm(beta: float) -> Tensor:
    if not LOWEST <= check_beta(beta) <= HIGHEST:
        raise ValueError(f"beta must begin within [{LOWEST:g}, {HIGHEST:g}], not at {beta!r}")
    return torch.tensor(math.log(beta), dtype=torch.float32)
