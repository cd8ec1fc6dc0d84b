"""The paper's experiments, run through the ordinary trainer and read back from run directories."""

from peer_rl.experiments.catalogue import CATALOGUE

EXPERIMENTS = {name: experiment.about for name, experiment in CATALOGUE.items()}
