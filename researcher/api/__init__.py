# Imported by cli; may import commands and what is below.
"""What a researcher's service knows, as HTTP and JSON for programs that are not Python.

`vocabulary` turns records and functions of the house into parameters; `resources` says what can be asked, `openapi`
describes it, `application` answers, `tokens` keeps who may ask. `report_link` is for people with browsers.
"""
