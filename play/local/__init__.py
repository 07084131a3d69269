"""The code that every demonstration and rehearsal has: processes, folders, options, printing."""
