"""The cloud server: holds ciphertext, perturbs it once, publishes it once; never a key, a seed or an id."""
