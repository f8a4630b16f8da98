"""Papers in code that can be read beside their text: a folder a paper.

A paper's pseudo-code, data, experiments and claims belong here. The algorithms that people
use live in `policies/`, the models that experiments train in `batched/`.
"""
