"""A search as figures: drawn by matplotlib, which nothing else in the house needs."""
