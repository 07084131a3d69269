"""A link that opens the report of one release in a browser.

The token stands behind the # of the address. No browser sends that part: it is in no log, not that of a proxy either,
and in no Referer. The page at the address is the same for every release and says nothing of any; its script sends the
token as a program does, and shows the report that comes, or why none does. The browser keeps nothing but the address.
"""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from starlette.responses import HTMLResponse

PAGE_PATH = re.compile(r"/releases/[^/]+/report")
"""Where the page is."""

_PAGE = Path(__file__).with_suffix(".html")
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def report_link(origin: str, release_id: str, token: str) -> str:
    """Return the address that opens a report.

    Args:
        origin: where browsers reach the service, such as https://rosa.example.org:7480.
        token: that may read the release.
    """
    return f"{origin}/releases/{release_id}/report#{token}"


def link_page() -> HTMLResponse:
    """Return the page that asks for the report; a browser runs its own script and no other, the report's neither."""
    html = _PAGE.read_text()
    (script,) = _SCRIPT.findall(html)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; connect-src 'self'; style-src 'unsafe-inline';"
        " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return HTMLResponse(html, headers={"Content-Security-Policy": policy})
