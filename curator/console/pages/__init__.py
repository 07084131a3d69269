"""The pages of a curator's console: `waiting_page` lists what waits, `release_page` takes decisions."""
