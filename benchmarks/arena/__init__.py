"""The arena: how good the config is that a search finds, for each epoch that it spends.

`README.md` states the protocol, and has the tables. `problems/` holds what is searched,
`contenders/` who searches. `desk.py` is the only place where a contender has a config trained, and
counts the epochs. `playing.py` plays what is not yet in `results/`; `scales.py` says what regret 0
and 1 are; `page.py` writes tables and figure. What only one peer needs lives in that peer's file.
"""
