"""How torch computes on the processor while something trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def processor(threads: int) -> Iterator[None]:
    """So many threads, and numbers below 1.2e-38 taken for zero; afterwards as it was before.

    Adam's mean of a gradient that stays zero (a dead unit, an action not drawn) shrinks by a tenth at each update until
    it is subnormal, and stays there for good, because 0.9 times the smallest number is rounded back to it. Processors
    take some hundred cycles for such a number. They move no weight: divided by Adam's epsilon they are 1e-30.

    Threads that torch has started already keep their own arithmetic; those that it starts from here on take this one.
    """
    before, flushed = torch.get_num_threads(), _takes_subnormals_for_zero()
    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(flushed)


def _takes_subnormals_for_zero() -> bool:
    return not torch.full((), 1e-39).mul(1.0).ne(0).item()
