"""Which noise and sample a question needs, before anybody is asked."""
