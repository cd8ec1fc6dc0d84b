"""The loop and what it needs: seeding, evaluation, metrics, checkpoints, run directories."""
