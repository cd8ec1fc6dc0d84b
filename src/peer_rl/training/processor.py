"""CPU settings of torch during training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def processor(threads: int) -> Iterator[None]:
    """Set torch's thread count and flush subnormal numbers to zero; restore both afterwards.

    Adam's mean of a gradient that stays zero (a dead unit, an action that is not drawn) decays until it is subnormal
    and stays there, because 0.9 times the smallest number rounds back to it. A processor takes about a hundred cycles
    for an operation on such a number. Flushing moves no weight: divided by Adam's epsilon these means are 1e-30.

    Threads that torch started earlier keep their own mode; threads started from here on use this one.
    """
    before, flushed = torch.get_num_threads(), _flushes_subnormals()
    torch.set_flush_denormal(True)
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(flushed)


def _flushes_subnormals() -> bool:
    return not torch.full((), 1e-39).mul(1.0).ne(0).item()
