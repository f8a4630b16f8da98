"""Papers in code that can be read beside their text."""
