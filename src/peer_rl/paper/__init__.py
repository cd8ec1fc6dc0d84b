"""The paper: its numbers, its experiments, and our runs next to them.

`published` reads ``data/``; `catalogue` lists the experiments and `plan` turns one into runs; `cells`, `derived` and
`figure1` compute what a table or figure shows; `comparison` sets it next to the paper; `ledger` answers "does PEER
help?"; `report` puts them on a page.
"""

from peer_rl.paper.catalogue import CATALOGUE

EXPERIMENTS = {name: experiment.about for name, experiment in CATALOGUE.items()}
