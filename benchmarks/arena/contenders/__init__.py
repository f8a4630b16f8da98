"""Who searches.

`contender.py` says what a contender is. `lastarms.py` has lastarm's own ways and `plain.py` what
needs no package. Each peer has a file, which is loaded only when the peer plays; `entered.py`
lists all of them, in the order of the tables.
"""
