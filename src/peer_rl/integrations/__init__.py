"""PEER in agents of other libraries: ``peer_rl.integrations.sb3`` is for Stable-Baselines3."""
