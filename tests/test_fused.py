"""peer_head against the plain layer and peer_loss: the same values, the same gradients."""

import pytest
import torch

from peer_rl import peer_head, peer_loss


def case(heads: int | None, outputs: int = 3):
    generator = torch.Generator().manual_seed(0)

    def rand(*shape: int) -> torch.Tensor:
        lead = () if heads is None else (heads,)
        return torch.rand(*lead, *shape, generator=generator, dtype=torch.float64)

    bias = rand(outputs) if heads is None else rand(1, outputs)
    return rand(16, 5), rand(5, outputs), bias, rand(16, 5)


@pytest.mark.parametrize("heads", [None, 1, 4])
@pytest.mark.parametrize(("of_q", "of_peer"), [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.3, -7.0)])
def test_values_and_gradients_are_those_of_the_plain_layer_and_the_plain_term(heads, of_q, of_peer):
    found = []
    for fused in (True, False):
        phi, weight, bias, phi_next = case(heads)
        for tensor in (phi, weight, bias):
            tensor.requires_grad_()
        if fused:
            q, peer = peer_head(phi, weight, bias, phi_next, beta=0.2)
        else:
            q, peer = phi @ weight + bias, peer_loss(phi, phi_next, beta=0.2)
        (of_q * (q**3).sum() + of_peer * peer).backward()
        found.append((q, peer, phi.grad, weight.grad, bias.grad))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_no_gradient_flows_into_the_target():
    phi, weight, bias, phi_next = case(2)
    phi_next.requires_grad_()
    q, peer = peer_head(phi.requires_grad_(), weight, bias, phi_next)
    (q.sum() + peer).backward()
    assert phi_next.grad is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, w, b, n: (p, w, b, n[:, :-1]), "phi_next must have phi's shape"),
        (lambda p, w, b, n: (p, w[:, :-1], b, n), "weight must have phi's heads and dim"),
        (lambda p, w, b, n: (p[None], w, b, n[None]), "phi must have shape"),
        (lambda p, w, b, n: (p * float("nan"), w, b, n), "phi must be finite"),
    ],
)
def test_bad_input_is_named(change, words):
    with pytest.raises(ValueError, match=words):
        peer_head(*change(*case(2)))


def test_a_bad_beta_is_named():
    with pytest.raises(ValueError, match="beta"):
        peer_head(*case(None), beta=-1.0)
