"""Gives the tests of the service over HTTP their programs."""

from tests.researcher.api.asking import program, reader

__all__ = ["program", "reader"]
