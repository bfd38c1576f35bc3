"""Who may talk to the studio: the browser that was given its key, on this machine, from the studio's own pages.

- *Host* must be this machine's own name or number with the studio's port. A page of another site whose name was made to
  point here (DNS rebinding) sends its own name.
- *The key*, 256 random bits, is once in the address that is opened and then in a cookie that no script reads and no
  other site's request carries (HttpOnly, SameSite=Strict). Another program of this machine on another port counts as
  the same site for cookies, hence
- *Origin*: whatever changes something must come from the studio's own pages.
"""

from __future__ import annotations

import hmac
import secrets

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

NAMES = ("127.0.0.1", "localhost")
_REFUSED = "This page needs the address that `rankdp studio` printed, with its key.\n"


class Locked:
    """Lets through what has the key.

    Parameters
    ----------
    app
        The application behind it.
    key
        The key.
    port
        The port that the studio listens on.
    """

    def __init__(self, app: ASGIApp, key: str, port: int) -> None:
        self.app, self._key = app, key
        self._hosts = {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == 80 else set())
        self.cookie = f"rankdp-studio-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._judged(Request(scope))
        await (self.app if answer is None else answer)(scope, receive, send)

    def _judged(self, request: Request) -> Response | None:
        """None for a request that may pass."""
        host = request.headers.get("host", "").lower()
        if host not in self._hosts:
            return PlainTextResponse("The studio answers to this machine's own name only.\n", 421)
        if request.method not in ("GET", "HEAD") and not self._own(request.headers, host):
            return PlainTextResponse("This did not come from a page of the studio.\n", 403)
        if request.url.path == "/" and (given := request.query_params.get("key")) is not None:
            if not self._right(given):
                return PlainTextResponse(_REFUSED, 403)
            draft = request.query_params.get("draft", "")
            entered = RedirectResponse(f"/w/{draft}/file" if draft.isalnum() else "/", 303)
            entered.set_cookie(self.cookie, self._key, httponly=True, samesite="strict")
            return entered
        if not self._right(request.cookies.get(self.cookie, "")):
            return PlainTextResponse(_REFUSED, 403)
        return None

    def _right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._key.encode())

    @staticmethod
    def _own(headers: Headers, host: str) -> bool:
        return headers.get("origin", "").lower() == f"http://{host}"


def new_key() -> str:
    """256 random bits, as text for an address."""
    return secrets.token_urlsafe(32)
