"""The paper: its numbers, its experiments, and our runs next to them.

`published` and `catalogue` read ``data/``. `plan` turns an experiment into runs, `cells` and `comparison` set its
scores next to the paper's, `derived` computes what its figures show and `panels` draws them. `ledger` and
`ledger_section` answer "does PEER help?"; `report` writes the page; `suite_pictures` draws the tasks and
`training_figure` one task's training.
"""

from peer_rl.paper.catalogue import CATALOGUE

EXPERIMENTS = {name: experiment.about for name, experiment in CATALOGUE.items()}
