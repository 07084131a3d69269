"""A round's result: estimates, report and picture."""
