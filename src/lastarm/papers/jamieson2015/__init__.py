"""Jamieson & Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization.

`pseudocode` holds the published algorithms, which the policies are tested against. All else is the
reproduction, `lastarm reproduce`. A part is a function from `Settings` to `Part` (both in `page`):
`traces` (figure 1), `comparisons` (§5, made of `experiments` on `data`), `grid` (what §5.1 depends
on), `table1`, `theorems`, `tightness`, `good_arms` (Theorem 4), `reductions` (§2) and `examples`.
The rules for claims are in `rules.toml`, `intervals` applies them. What is drawn is in `figures`,
and `redrawn` draws it from tables. `provenance` says where numbers come from. What holds for any
search, not just for this paper's, belongs elsewhere.
"""
