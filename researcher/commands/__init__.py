"""The commands of `veiltab researcher`, beside those of rounds."""
