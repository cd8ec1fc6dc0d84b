"""What tools/compare_commits.py calls a difference between the runs of two commits."""

import json

import pytest
import torch
from compare_commits import difference
from safetensors.torch import save

STATE = {"step": 300, "rng": 15}


def write_run(runs, *, metrics="1\n", weight=0.0, state=STATE, noise=0.0, settings="beta = 1\n"):
    folder = runs / "checkpoint" / "000000000300"
    folder.mkdir(parents=True)
    (runs / "config.toml").write_text(settings)
    (runs / "metrics.jsonl").write_text(metrics)
    (folder / "agent.safetensors").write_bytes(save({"weight": torch.tensor([weight])}))
    values = json.dumps([[[name], value] for name, value in state.items()])
    (folder / "loop.safetensors").write_bytes(save({'["noise"]': torch.tensor([noise])}, metadata={"values": values}))
    return runs


@pytest.mark.parametrize("new", [{}, {"state": {**STATE, "added": 1.5}}, {"settings": "beta = 1\nadded = 2\n"}])
def test_what_only_the_new_commit_has_is_no_difference(new, tmp_path):
    assert difference(write_run(tmp_path / "old"), write_run(tmp_path / "new", **new)) == ""


@pytest.mark.parametrize(
    ("new", "file"),
    [
        ({"metrics": "2\n"}, "metrics.jsonl"),
        ({"weight": 1e-38}, "agent.safetensors"),
        ({"state": {**STATE, "rng": 16}}, "loop.safetensors"),
        ({"state": {"step": 300}}, "loop.safetensors"),
        ({"noise": 1e-38}, "loop.safetensors"),
        ({"settings": "beta = 2\n"}, "config.toml"),
    ],
)
def test_what_changed_or_is_gone_is_named(new, file, tmp_path):
    assert difference(write_run(tmp_path / "old"), write_run(tmp_path / "new", **new)).startswith(f"{file} differ")
