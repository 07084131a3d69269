# Imported by curator, play, researcher, server; may import observe and what is below.
"""Everything that answers over HTTP, and pages.

`answering` is the frame of consoles, a researcher's service and reports of nodes, and limits a body, which `bodies`
parses; `serving` is the port and TLS. `document` is a self-contained page. `application` is a console on the loopback
interface: `sessions` keeps who is there, and `pages` says what a console consists of.
"""
