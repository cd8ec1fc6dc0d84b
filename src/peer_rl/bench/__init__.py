"""What ``peer-rl bench`` measures, always as ratios from one process.

`updates`, `pixel_updates`: an update with PEER, without it, and in Stable-Baselines3; `loops`, `contenders`: whole
training runs; `passes`, `planning`: where an update's time goes; `replays`: sampling; `renderers`: drawing frames.
"""
