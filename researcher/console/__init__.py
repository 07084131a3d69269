"""The console of a researcher and its analysts: pages on the loopback interface, for `veiltab researcher console`.

`console` says which pages there are; each of the modules named ..._pages has some of them. `desk` reads releases,
`calculations` bounds how long a page may compute, `writing` draws microdata in the background.
"""
