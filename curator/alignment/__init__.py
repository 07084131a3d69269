"""How curators learn which rows of the hub are of their own people: obliviously, by tokens, or by linking."""
