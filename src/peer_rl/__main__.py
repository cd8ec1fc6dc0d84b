"""``python -m peer_rl`` is ``peer-rl``."""

import sys

from peer_rl.cli.main import main

sys.exit(main())
