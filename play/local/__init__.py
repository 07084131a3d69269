# Imported by cli, compose, demos, linkage, rehearsal; may import registers and what is below.
"""The code that every demonstration and rehearsal has: processes, folders, options, printing."""
