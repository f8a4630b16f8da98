"""A search in forms that other tools read: DataFrames, CSV, and Optuna studies."""
