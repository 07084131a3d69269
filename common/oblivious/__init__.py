# Imported by curator, play; may import core, storage and what is below.
"""The oblivious function of a join: hub and spoke get one value for each id that both have. Pure, as the core is.

The two base transfers, the rows from them, the check of what the spoke sent and the value of an id stand in
`base_transfers`, `extension`, `linear_check` and `function`; a spoke's ids lie in a `store`.
"""
