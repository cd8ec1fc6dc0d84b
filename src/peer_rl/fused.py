"""The last layer and PEER in one: for critics of one's own where every per cent counts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from peer_rl.regularizers import DEFAULT_BETA, Features, check_beta, check_pair, peer_watch


class _HeadAndPeer(torch.autograd.Function):
    """PEER's gradient, scale * phi', is a term that a matrix product adds for nothing: baddbmm's first argument."""

    @staticmethod
    def forward(ctx: Any, phi: Tensor, weight: Tensor, bias: Tensor, phi_next: Tensor, scale: float) -> Any:
        ctx.save_for_backward(phi, weight, phi_next)
        ctx.scale = scale
        return torch.baddbmm(bias, phi, weight), torch.dot(phi.reshape(-1), phi_next.reshape(-1)).mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, q_grad: Tensor, peer_grad: Tensor) -> tuple[Tensor | None, ...]:
        phi, weight, phi_next = ctx.saved_tensors
        if peer_grad.is_cpu:
            phi_grad = torch.baddbmm(phi_next, q_grad, weight.mT, beta=ctx.scale * peer_grad.item())
        else:  # reading the scalar would wait for the device
            phi_grad = torch.baddbmm(phi_next * (ctx.scale * peer_grad), q_grad, weight.mT)
        return phi_grad, torch.bmm(phi.mT, q_grad), q_grad.sum(-2, keepdim=True), None, None


def peer_head(
    phi: Tensor, weight: Tensor, bias: Tensor, phi_next: Tensor, beta: float = DEFAULT_BETA
) -> tuple[Tensor, Tensor]:
    """Compute q = phi W + b of a critic's last layer, and PEER's term beta <phi, sg phi'> beside it.

    For one critic phi is (batch, dim), weight (dim, outputs), bias (outputs,): pass ``layer.weight.mT`` of an
    ``nn.Linear``. For an ensemble phi is (heads, batch, dim), weight (heads, dim, outputs), bias (heads, 1, outputs).
    The value and all gradients are those of the plain layer and `peer_loss`; there is no second derivative.
    """
    beta = check_beta(beta)
    check_pair(phi, phi_next)
    if phi.dim() not in (2, 3):
        raise ValueError(f"phi must have shape (batch, dim) or (heads, batch, dim), not {tuple(phi.shape)}")
    single = phi.dim() == 2
    layers = (phi, weight, bias, phi_next.detach())
    if single:
        layers = (phi.unsqueeze(0), weight.unsqueeze(0), bias.reshape(1, 1, -1), phi_next.detach().unsqueeze(0))
    if layers[1].dim() != 3 or layers[1].shape[:2] != (layers[0].shape[0], phi.shape[-1]):
        raise ValueError(
            f"weight must have phi's heads and dim, (..., {phi.shape[-1]}, outputs), not {tuple(weight.shape)}"
        )
    q, peer = _HeadAndPeer.apply(*layers, beta / phi.shape[-2])  # type: ignore[no-untyped-call]
    peer_watch(Features(phi, phi_next), peer, signed_is_safe=False)
    return (q.squeeze(0) if single else q), peer
