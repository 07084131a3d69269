"""Replay of Lin, Wang, Rane: error against sample size, and what the secret order adds."""

from veiltab.papers.experiment import Experiment
from veiltab.papers.lin.experiment import EXPERIMENT as _EXPERIMENT

EXPERIMENT: Experiment = _EXPERIMENT
