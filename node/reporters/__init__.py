"""One node that reports, or thousands.

Imported by cli; may import answers and what is below.
"""
