"""Callbacks that report for the loops of frameworks, one framework a file.

Each is small: what a framework calls at the end of an epoch, as a `report` whose state is a
checkpoint of the framework itself. The loop is `lastarm.trainers.reporting`. A framework is
imported in its own file only.
"""
