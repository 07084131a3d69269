"""The cloud server: it holds ciphertext, perturbs and publishes it once, and never has a key, a seed or an id."""
