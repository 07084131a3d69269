"""What a running party reports: steps in its log, metrics, traces, and its status."""
