"""Replay of Biswas, Cormode, Maple: sampled local reports, their estimators, and answers to the open questions."""

from veiltab.papers.biswas.experiment import BiswasExperiment
from veiltab.papers.experiment import Experiment

EXPERIMENT: Experiment = BiswasExperiment()
