"""Replay of Hu, Drechsler, Kim: whether a sample is estimated more accurately than the population."""

from researcher.experiments.replay.experiment import Experiment
from researcher.experiments.replay.hu.experiment import EXPERIMENT as _EXPERIMENT

EXPERIMENT: Experiment = _EXPERIMENT
