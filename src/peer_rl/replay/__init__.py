"""Replay: a store keeps what was played, a sampler chooses from it, ``Replay`` is both.

``ring`` rows under every store; ``vectors`` and ``frames`` the two stores; ``windows`` n-step returns; ``sequences``
both stores again, with windows of consecutive steps; ``uniform`` and ``priority`` (over ``sumtree``) the two samplers;
``make`` picks by the settings and checks the memory first.
"""
