"""Replay of Lin, Wang, Rane: error against sample size, and what the secret order adds."""

from researcher.experiments.replay.experiment import Experiment
from researcher.experiments.replay.lin.experiment import EXPERIMENT as _EXPERIMENT

EXPERIMENT: Experiment = _EXPERIMENT
