"""Replay of Biswas, Cormode, Maple: sampled local reports, their estimators, and answers to the open questions."""

from researcher.experiments.replay.biswas.experiment import BiswasExperiment
from researcher.experiments.replay.experiment import Experiment

EXPERIMENT: Experiment = BiswasExperiment()
