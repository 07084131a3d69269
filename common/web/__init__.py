"""Pages: the frame of a document in one file, and that of every console on the loopback interface.

`document` is a self-contained page. `serving` runs a console; `application` answers its requests after `guard` has
refused what is not a person's own; `sessions` keeps who is there; `pages` says what a console consists of.
"""
