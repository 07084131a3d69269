"""Benchmarks: the cost of each step a row, beside a plain implementation."""
