"""The pure core: alphabets, the mechanism, pads, samples, coins; it knows no protocol, no database and no file."""
