"""Who decides what: policy, persons, verdicts, and requests as people see them."""
