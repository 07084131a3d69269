"""Code that all commands share: options, output, errors, running a party."""
