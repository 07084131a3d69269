# Imported by deploy, microdata, play, questions, report, survival; may import analysis, frequency and what is below.
"""Analyses of numbers: means, sums, variances, quantiles and linear regression, each with its interval."""
