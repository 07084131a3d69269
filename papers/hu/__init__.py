"""Replay of Hu, Drechsler, Kim: whether a sample is estimated more accurately than the population."""

from veiltab.papers.experiment import Experiment
from veiltab.papers.hu.experiment import EXPERIMENT as _EXPERIMENT

EXPERIMENT: Experiment = _EXPERIMENT
