"""Analyses of numbers: means, sums, variances, quantiles and linear regression, each with its interval."""
