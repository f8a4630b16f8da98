"""The fault campaigns: what lastarm promises under faults, tested until a break would show.

`make faults` runs in full those whose code has changed and writes `docs/faults.md`; what each part
of a campaign saw is kept in `faults/seen`. `make test` runs each in its short form
(`tests/test_faults.py`, F10 in `tests/test_ray.py`). What is promised, and what is not, is in
`docs/reliability.md`.
"""
