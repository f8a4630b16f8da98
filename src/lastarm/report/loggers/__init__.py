"""Loggers: a search, written event by event to what a team looks at anyway.

A file for each tool, which imports it when a logger is made. What is written, and when, is decided
in `logger.py`. Tables and studies of a search that has ended are in `lastarm.report.exports`.
"""

from lastarm.report.loggers.logger import Logger as Logger
from lastarm.report.loggers.mlflow import MLflow as MLflow
from lastarm.report.loggers.tensorboard import TensorBoard as TensorBoard
from lastarm.report.loggers.wandb import WeightsAndBiases as WeightsAndBiases
