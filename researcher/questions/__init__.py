# Imported by api, client, commands, deploy; may import linkage_errors and what is below.
"""What may be asked of tables in one sentence, and which analysis answers it."""
