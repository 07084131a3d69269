"""Replay of the MUST paper: multistage sampling, its amplification, its noise and its three utility experiments."""

from researcher.experiments.replay.experiment import Experiment
from researcher.experiments.replay.must.experiment import MustExperiment

EXPERIMENT: Experiment = MustExperiment()
