"""What is searched: problems that answer at any config, and at every number of epochs.

`problem.py` says what a problem is. `surrogates.py` has networks that were fitted to curves,
`forests.py` trees over recorded tables, `models.py` models that are trained here, and `noisy.py`
any of these with noise on every look. `found.py` lists those that the folders have.
"""
