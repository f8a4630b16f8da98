"""A search in forms that other tools read: tables, CSV, an Optuna study."""
