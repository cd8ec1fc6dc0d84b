"""``peer-rl bench``: how quick the loop and the update are, beside Stable-Baselines3 and SBX, on this machine."""
