"""Pages on the loopback interface: the frame of every console.

`serving` runs a console; `application` answers its requests after `guard` has refused what is not a person's own;
`sessions` keeps who is there; `pages` says what a console consists of.
"""
