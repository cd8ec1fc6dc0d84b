"""Pictures per second of DMControl's tasks by renderer, quality and size; writes results/render_speed.json.

python benchmarks/render_speed.py [PICTURES]
"""

import json
import sys
from pathlib import Path

from peer_rl.bench.renderers import measure_renderers
from peer_rl.plugins import version_of

RESULTS = Path(__file__).parent / "results" / "render_speed.json"


def main() -> None:
    pictures = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rows = measure_renderers(pictures, tell=lambda what: print(what, file=sys.stderr))
    versions = {name: version_of(name) for name in ("dm_control", "mujoco")}
    RESULTS.write_text(json.dumps({"pictures": pictures, "versions": versions, "rendering": rows}, indent=2) + "\n")
    for row in rows:
        print("{renderer:<7} {task:<22} {size:>3} {quality:<6} {pictures_per_second:7.1f} agent steps/s".format(**row))


if __name__ == "__main__":
    main()
