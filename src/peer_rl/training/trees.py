"""Nested dicts of tensors and JSON values, as one safetensors file: no pickle in, no pickle out (law 6)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor

Tree = dict[Any, Any]


def pack(tree: Tree) -> bytes:
    """Tensors by their path; everything else as JSON in the file's header."""
    tensors: dict[str, Tensor] = {}
    values: list[tuple[list[Any], Any]] = []
    for path, leaf in _leaves(tree, []):
        if isinstance(leaf, np.ndarray):
            leaf = torch.from_numpy(np.ascontiguousarray(leaf))
        if isinstance(leaf, Tensor):
            tensors[json.dumps(path)] = leaf.detach().cpu().contiguous()
        else:
            values.append((path, leaf))
    return save_safetensors(tensors, metadata={"values": json.dumps(values)})


def unpack(content: bytes) -> Tree:
    """The tree that ``pack`` was given, tensors on the CPU. Raises ValueError for anything else."""
    try:
        tensors = load_safetensors(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        values = json.loads(header["__metadata__"]["values"])
        tree: Tree = {}
        for path, leaf in [*values, *((json.loads(name), tensor) for name, tensor in tensors.items())]:
            branch = tree
            for key in path[:-1]:
                branch = branch.setdefault(key, {})
            branch[path[-1]] = leaf
        return tree
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"not a file of peer-rl ({error})") from error


def all_finite(tree: Tree) -> bool:
    """Whether no floating-point tensor of the tree holds a NaN or an infinity."""
    tensors = [leaf for _, leaf in _leaves(tree, []) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def _leaves(tree: Tree, path: list[Any]) -> Iterator[tuple[list[Any], Any]]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, [*path, key])
        else:
            yield [*path, key], value
