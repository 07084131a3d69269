# Imported by command, curator, deploy, researcher, server, tasks, web; may import rpc and what is below.
"""What belongs to the running process: its log, its memory, its signals."""
