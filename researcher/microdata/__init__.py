"""Rows of a model that anybody may analyse, and what several copies of them say together."""
