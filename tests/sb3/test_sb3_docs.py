"""The ten lines at the top of docs/stable-baselines3.md, pasted into a file, train and show the representation."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

PAGE = Path(__file__).parents[2] / "docs" / "stable-baselines3.md"


@pytest.mark.slow
def test_the_pages_first_script(tmp_path):
    script = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
    assert len([line for line in script.splitlines() if line.strip()]) <= 10
    lengths = iter((1_300, 300))
    shorter = re.sub(r"total_timesteps=[\d_]+", lambda _: f"total_timesteps={next(lengths)}", script)
    assert next(lengths, None) is None
    (tmp_path / "script.py").write_text(shorter)
    command = [sys.executable, "-W", "error", "script.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    folders = run.stdout.splitlines()[-1].split()  # verdicts come before
    assert folders == ["runs/sb3/DQN_1", "runs/sb3/TD3_1"]
    # DQN learns after 1,000 steps, and its rollouts are 256 steps long
    for folder, steps in zip(folders, ([1001, 1536], [300]), strict=True):
        events = EventAccumulator(str(tmp_path / folder))
        events.Reload()
        assert {"representation/cosine", "representation/drd"} <= set(events.Tags()["scalars"])
        assert [point.step for point in events.Scalars("representation/cosine")] == steps
    assert {path.name for path in tmp_path.glob("*.zip")} == {"cartpole.zip", "pendulum.zip"}
