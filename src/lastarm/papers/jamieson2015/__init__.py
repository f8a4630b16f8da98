"""Jamieson & Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization."""
