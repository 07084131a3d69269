"""What belongs to the running process: its log, its memory, its restart."""
