"""The paper's experiments, run through the ordinary trainer and read back from run directories."""

EXPERIMENTS = {
    "gridworld": "figure 3: DQN against PEER in the grid world; cosine, value difference, steps to the goal",
}
