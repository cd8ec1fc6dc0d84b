"""From run directories to tables, figures and one page.

`runs` reads directories; `curves`, `scores`, `power`, `results`, `aggregates`, `findings` and `gridworld` compute.
`tables`, `charts` and `figures` show numbers, `sections` puts them into the parts of a `page`, which ``templates/``
turns into HTML; `write` puts all of it into files. `compare` and `xray` are the pages of those two commands;
`error_rates` shows how often the verdicts are wrong; `inventory` lists and deletes runs.
"""
