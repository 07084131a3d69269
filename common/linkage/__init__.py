# Imported by curator, play, study; may import core, storage and what is below.
"""Links people of two tables who have no common number: pure functions of rows, without files, sockets and clocks."""
