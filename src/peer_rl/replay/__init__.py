"""Replay: numpy columns in a ring; n-step returns and gamma are applied when sampling."""
