"""From run directories to tables, figures and one page.

`runs` reads directories; `curves`, `statistics`, `results`, `aggregates`, `findings` and `gridworld` compute; `tables`,
`charts`, `figures`, `sections` and `page` show; `write` puts all of it into files. `error_rates` says how often the
verdicts are wrong.
"""
