"""The pure core: alphabets, the mechanism, pads, samples, coins; no protocol, no database, no files."""
