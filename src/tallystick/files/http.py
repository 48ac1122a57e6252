"""Fetch byte ranges of files by HTTP from untrusted hosts.

An answer is read up to the requested length, within `PATIENCE`, `DEADLINE` and the allowance of
the source. A host may redirect to another host only as `Reach` allows. The user's token is sent
only to the host that was requested.
"""

from __future__ import annotations

import re
import time
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from io import BufferedReader, RawIOBase
from typing import IO, TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    AbstractHTTPHandler,
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from tallystick.errors import BadInput, quoted
from tallystick.files.allowance import Allowance
from tallystick.files.hosts import Reach, origin
from tallystick.files.remote import NotThere, Piece, Tally
from tallystick.version import __version__

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PATIENCE = 10  # seconds without any data
DEADLINE = 60  # seconds for a whole answer
LARGEST_WHOLE = 16_000_000  # bytes of a file fetched whole, if a host serves no ranges
LARGEST_DOCUMENT = 4_000_000  # bytes; the hub's list of a thousand files has half a million
LARGEST_HEAD = 262_144  # bytes of status line and headers; the hub sends about three thousand
LARGEST_ANSWER = 20_000_000  # bytes of content as sent, with chunked encoding
MOST_REDIRECTS = 5

_BLOCK = 1 << 18
_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")


class Web:
    """HTTP requests of one source."""

    def __init__(
        self, tally: Tally, token: str | None = None, refused: str = "it requires a login", *, elsewhere: bool = False
    ) -> None:
        """Share the allowance of the source; keep no other state.

        Args:
            tally: of the source.
            token: the user's token for the requested host.
            refused: advice if the host requires authentication.
            elsewhere: whether the host may redirect to other hosts, as the hub does.
        """
        self._allowance, self._token, self._refused = tally.allowance, token, refused
        self._opener = OpenerDirector()
        reach = Reach()
        for handler in (
            ProxyHandler(), Connecting(self._allowance, reach), HTTPDefaultErrorHandler(), HTTPErrorProcessor(),
            Redirects(self._allowance, reach, elsewhere=elsewhere),
        ):  # fmt: skip
            self._opener.add_handler(handler)

    def piece(self, url: str, start: int, length: int, what: str) -> Piece:
        """Return a byte range of a file; the whole of a small file if the host serves no ranges.

        Args:
            url: address of the file.
            start: first byte.
            length: number of bytes.
            what: name of the file in messages.

        Raises:
            NotThere: if there is no such file.
            BadInput: for any other failure. The message is one line that begins with `what`.
        """
        try:
            with self._get(url, {"Range": f"bytes={start}-{start + length - 1}"}) as response:
                return _piece(response, start, length)
        except HTTPError as error:
            if error.code == 416 and (error.headers.get("Content-Range") or "").endswith("*/0"):
                return Piece(b"", 0)
            raise self._status_error(error, what) from None
        except (BadInput, OSError, HTTPException, ValueError) as error:
            raise _wrong(error, what) from None

    def document(self, url: str, what: str) -> tuple[bytes, str | None]:
        """Return a small document, and the address of the next page if there is one.

        Args:
            url: address of the document.
            what: its name in messages.

        Raises:
            NotThere: if there is no such document.
            BadInput: for any other failure, and a document of more than `LARGEST_DOCUMENT` bytes.
        """
        try:
            with self._get(url, {}) as response:
                content = _content(response, LARGEST_DOCUMENT + 1)
                if len(content) > LARGEST_DOCUMENT:
                    raise BadInput(f"the host sends more than {LARGEST_DOCUMENT:,} bytes", code="too-large")
                following = re.search(r'<([^<>]*)>; *rel="next"', response.headers.get("Link") or "")
                same = following and origin(urlsplit(following[1])) == origin(urlsplit(url))
                return content, following[1] if following and same else None
        except HTTPError as error:
            raise self._status_error(error, what) from None
        except (BadInput, OSError, HTTPException, ValueError) as error:
            raise _wrong(error, what) from None

    def _get(self, url: str, headers: dict[str, str]) -> HTTPResponse:
        headers |= {"User-Agent": f"tallystick/{__version__}", "Accept-Encoding": "identity"}
        request = Request(url, headers=headers)  # noqa: S310 - the opener handles only http and https
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        left = self._allowance.request()
        response: HTTPResponse = self._opener.open(request, timeout=min(PATIENCE, left))
        if (encoding := response.headers.get("Content-Encoding") or "identity") != "identity":
            response.close()
            raise BadInput(
                f"the host compresses its answer ({quoted(encoding)}), so byte ranges cannot be read",
                code="unreachable",
            )
        return response

    def _status_error(self, error: HTTPError, what: str) -> BadInput:
        """Return the error for an HTTP status."""
        error.close()
        code, word = error.code, error.headers.get("X-Error-Code")  # the hub's own code, such as RevisionNotFound
        said = f"{code} ({quoted(word)})" if word else str(code)
        if code in (404, 410):
            return NotThere(f"{what} was not found: the host answers {said}")
        if 300 <= code < 400:
            return BadInput(f"{what}: the host redirects endlessly, or to an invalid address", code="unreachable")
        if code in (401, 403):
            return BadInput(f"{what} may not be read: the host answers {said}; {self._refused}", code="unreadable")
        return BadInput(f"{what}: the host answers {said}", code="unreachable")


class Answer(HTTPResponse):
    """Response with a deadline, also for its headers, which a host could send without end."""

    def __init__(self, sock: Any, *arguments: Any, allowance: Allowance, **more: Any) -> None:
        super().__init__(sock, *arguments, **more)
        self._allowance, self._in_time = allowance, _InTime(self.fp, allowance)
        self.fp = BufferedReader(self._in_time)

    def begin(self) -> None:
        """Read the headers, and each "100 Continue" before them."""
        super().begin()
        self._in_time.left = LARGEST_ANSWER

    def read1(self, n: int = -1) -> bytes:
        """Read some content: at most one chunk, since each costs time however short it is."""
        self._allowance.read(0)
        return super().read1(n)


class _InTime(RawIOBase):
    """Stream from a host with a deadline and a size limit."""

    def __init__(self, file: Any, allowance: Allowance) -> None:
        self._file, self._allowance, self._end = file, allowance, time.monotonic() + DEADLINE
        self.left = LARGEST_HEAD  # bytes that may still come

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if time.monotonic() > self._end:
            raise BadInput(f"the host is still sending its answer after {DEADLINE} seconds", code="unreachable")
        wanted = memoryview(buffer).cast("B")
        content = self._file.read1(len(wanted))
        self._allowance.read(len(content))
        self.left -= len(content)
        if self.left < 0:
            raise BadInput("the host sends far more than was requested", code="too-large")
        wanted[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


class Connecting(AbstractHTTPHandler):
    """Opens a connection for each request, through `Reach`."""

    http_request = https_request = AbstractHTTPHandler.do_request_

    def __init__(self, allowance: Allowance, reach: Reach) -> None:
        super().__init__()
        self._allowance, self._reach = allowance, reach

    def http_open(self, request: Request) -> HTTPResponse:
        """Open an HTTP connection."""
        return self.do_open(partial(self._connection, HTTPConnection, request), request)

    def https_open(self, request: Request) -> HTTPResponse:
        """Open an HTTPS connection."""
        return self.do_open(partial(self._connection, HTTPSConnection, request), request)

    def _connection(self, kind: type[HTTPConnection], request: Request, host: str, **more: Any) -> HTTPConnection:
        made = kind(host, **more)
        made.response_class = partial(Answer, allowance=self._allowance)  # type: ignore[assignment]
        if request.host == urlsplit(request.full_url).netloc:  # otherwise the host is a proxy that the user configured
            made._create_connection = self._reach.connect  # type: ignore[attr-defined]
        return made


class Redirects(HTTPRedirectHandler):
    """Follows redirects, and drops the user's token if the target is another host."""

    max_redirections = MOST_REDIRECTS

    def __init__(self, allowance: Allowance, reach: Reach, *, elsewhere: bool) -> None:
        self._allowance, self._reach, self._elsewhere = allowance, reach, elsewhere

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str) -> Request:
        """Return the redirected request, or raise `BadInput`."""
        fp.close()  # not read: the content may never end
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        self._reach.refuse(before, after, elsewhere=self._elsewhere)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is None:
            raise BadInput("the host redirects nowhere", code="unreachable")
        if origin(after) != origin(before):
            request.remove_header("Authorization")
        self._allowance.request()
        return request


def _piece(response: HTTPResponse, start: int, length: int) -> Piece:
    """Return the content of a response, checked against the requested range."""
    version = response.headers.get("ETag")
    if response.status == 200 and start == 0:  # the whole file, although a range was requested
        claimed = int(response.headers.get("Content-Length") or 0)
        content = b"" if claimed > LARGEST_WHOLE else _content(response, LARGEST_WHOLE + 1)
        if max(claimed, len(content)) > LARGEST_WHOLE:
            raise BadInput(
                f"the host does not support byte ranges, and the file has more than {LARGEST_WHOLE:,} bytes:"
                " download it, and name the file",
                code="too-large",
            )
        return Piece(content, max(claimed, len(content)), version)
    stated = _RANGE.fullmatch(response.headers.get("Content-Range") or "")
    if response.status != 206 or stated is None:
        raise BadInput(
            f"the host was asked for a byte range, and answers {response.status} without one", code="unreachable"
        )
    first, last, size = map(int, stated.groups())
    if first != start or last != min(start + length, size) - 1:
        raise BadInput(
            f"the host was asked for {length:,} bytes from byte {start:,}, and answers {quoted(stated[0])}",
            code="unreachable",
        )
    return Piece(_content(response, last - first + 1), size, version)


def _content(response: HTTPResponse, most: int) -> bytes:
    """Return up to `most` bytes of content; fewer only if the content ends."""
    content = bytearray()
    while len(content) < most and (block := response.read1(min(_BLOCK, most - len(content)))):
        content += block
    if len(content) < most and response.length:
        raise BadInput(
            f"the host stopped after {len(content):,} bytes, with {response.length:,} missing", code="unreachable"
        )
    return bytes(content)


def _wrong(error: Exception, what: str) -> BadInput:
    """Return the error for a failed transfer, in words."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(error.__context__, BadInput):  # http.client took it for a malformed chunk size
        reason = error.__context__
    if isinstance(reason, TimeoutError):
        return BadInput(f"{what}: the host sent nothing for {PATIENCE} seconds", code="unreachable")
    if isinstance(reason, OSError):
        return BadInput(f"{what} cannot be reached: {reason.strerror or reason}", code="unreachable")
    if isinstance(reason, BadInput):
        return BadInput(f"{what}: {reason}", code=reason.code)
    return BadInput(f"{what}: the host's answer is not HTTP ({type(reason).__name__})", code="unreachable")
