"""A search in forms that other tools read: DataFrames, CSV, Optuna; not for people."""
