"""What a running party tells of itself: steps in its log, metrics, traces, and its status."""
