"""Replay of the MUST paper: multistage sampling, its amplification, its noise and its three utility experiments."""

from veiltab.papers.experiment import Experiment
from veiltab.papers.must.experiment import MustExperiment

EXPERIMENT: Experiment = MustExperiment()
