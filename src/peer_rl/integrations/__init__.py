"""PEER in other people's agents. ``peer_rl.integrations.sb3`` is for Stable-Baselines3."""
