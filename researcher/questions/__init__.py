"""What may be asked of tables in one sentence, and which analysis answers it."""
