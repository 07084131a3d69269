# Imported by curator, deploy, researcher, server; may import command, tasks and what is below.
"""What a running party reports: steps in its log, metrics, traces, and its status."""
