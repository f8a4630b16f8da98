"""Jamieson & Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization.

`pseudocode` holds the published algorithms, which the policies are tested against. All else is the
reproduction, `lastarm reproduce`. A part is a function from `Settings` to `Part` (both in `page`):
`traces` (figure 1), `comparisons` (§5, made of `experiments` on `data`), `table1`, `theorems` and
`examples`. What is drawn is in `figures`. What holds for any search, not just for this paper's,
belongs elsewhere.
"""
