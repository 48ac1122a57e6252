"""Resolve host names, and decide which addresses may be contacted.

The host that the user names may be anywhere: on the web, in the local network, on this machine. A
host on the web must not lead to the other two, by a redirect or by a changed DNS entry. So each
connection resolves the name once, checks every address, and connects only to a checked one.

Through a proxy that the user configured, the proxy resolves names, and no address is checked here.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult

from tallystick.errors import BadInput, quoted

MOST_ADDRESSES = 4  # addresses of one name that are tried, each with the full timeout

PUBLIC, PRIVATE, HERE, LINK = "public", "private", "loopback", "link-local"

_PORTS = {"http": 80, "https": 443}
_NETLOC = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?", re.ASCII)
_SPECIAL = ipaddress.ip_network("192.0.0.0/24")  # RFC 6890; older Python versions call it global
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address


class Reach:
    """Allowed connections of one source: to public addresses, or of the kind of the first one."""

    def __init__(self) -> None:
        self.first: str | None = None

    def connect(
        self, address: tuple[str, int], timeout: Any = None, source: tuple[str, int] | None = None
    ) -> socket.socket:
        """Open a connection, as `socket.create_connection` does.

        Args:
            address: host and port.
            timeout: in seconds.
            source: local address to bind to.

        Raises:
            BadInput: if the name resolves only to addresses that may not be contacted.
            OSError: if nothing answers.
        """
        host, port = address
        try:
            found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
        except UnicodeError:
            raise BadInput(f"{quoted(host)} is not a host name", code="bad-value") from None
        kinds = [kind_of(str(where[0])) for *_, where in found]
        if self.first is None:
            self.first = self._first(host, kinds)
        usable = [one for one, kind in zip(found, kinds, strict=True) if kind in (PUBLIC, self.first)]
        if not usable:
            raise BadInput(f"{host} resolves to {found[0][4][0]}, a {kinds[0]} address: not followed", code="unsafe")
        failed: OSError | None = None
        for family, kind, protocol, _, where in usable[:MOST_ADDRESSES]:
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(timeout)
                if source:
                    connection.bind(source)
                connection.connect(where)
            except OSError as error:
                connection.close()
                failed = error
            else:
                return connection
        assert failed is not None  # noqa: S101  # at least one was tried
        raise failed

    def _first(self, host: str, kinds: list[str]) -> str:
        """Return the kind of address of the host that the user named."""
        if PUBLIC in kinds:  # then its private addresses are not used
            return PUBLIC
        if kinds[0] == LINK and not _is_address(host):
            raise BadInput(
                f"{host} resolves to a link-local address: if intended, give the address itself", code="unsafe"
            )
        return kinds[0]

    def refuse(self, before: SplitResult, after: SplitResult, *, elsewhere: bool) -> None:
        """Raise `BadInput` for a redirect that is not followed.

        Args:
            before: the requested address.
            after: the redirect's target.
            elsewhere: whether another host may serve the file, as for the hub.

        Raises:
            BadInput: with the target and the reason.
        """
        if not _NETLOC.fullmatch(after.netloc) or not _has_port(after):
            raise BadInput(
                f"the host redirects to {quoted(after.netloc)}, which is not a host: not followed", code="unsafe"
            )
        said = f"the host redirects to {after.scheme}://{after.netloc}"
        if after.scheme not in ("https", before.scheme):
            raise BadInput(f"{said}, which is not HTTPS: not followed", code="unsafe")
        if origin(before) == origin(after):
            return
        numbers = _numeric(after.hostname or "")
        kind = PUBLIC if numbers is None else kind_of(numbers)
        if kind not in (PUBLIC, self.first):
            raise BadInput(f"{said}, a {kind} address: not followed", code="unsafe")
        if _same_site(before, after):
            return
        if not elsewhere:
            raise BadInput(f"{said}, another host: not followed; use that address if you trust it", code="unsafe")
        if after.scheme != "https" and self.first not in (HERE, PRIVATE):
            raise BadInput(f"{said}, another host without HTTPS: not followed", code="unsafe")


def origin(url: SplitResult) -> tuple[str, str, int | None]:
    """Return scheme, host and port of an address; equal for addresses of the same origin."""
    host = (url.hostname or "").removesuffix(".")
    with suppress(UnicodeError):
        host = host.encode("idna").decode()
    return url.scheme, host, url.port or _PORTS.get(url.scheme)


def _same_site(before: SplitResult, after: SplitResult) -> bool:
    """Return whether a redirect only changes HTTP to HTTPS or ``www.``, both at default ports."""
    (first, host, port), (second, other, other_port) = origin(before), origin(after)
    usual = second == "https" and (port, other_port) == (_PORTS[first], _PORTS[second])
    return usual and host.removeprefix("www.") == other.removeprefix("www.")


def _has_port(url: SplitResult) -> bool:
    try:
        return url.port != 0
    except ValueError:
        return False


def kind_of(address: str) -> str:
    """Return the kind of an address; for IPv4 inside IPv6, the kind of the IPv4 address."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if found in _TRANSLATED or (int(found) >> 32 == 0 and int(found) > 1):
            inner = ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)
        if inner is not None:
            return kind_of(str(inner))
    if found.is_loopback or found.is_unspecified:
        return HERE
    if found.is_link_local:
        return LINK
    local = found in _SPECIAL or found.is_multicast or found.is_reserved or getattr(found, "is_site_local", False)
    return PUBLIC if found.is_global and not local else PRIVATE


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _numeric(host: str) -> str | None:
    """Return the IP address that a host is written as, also in octal or hex; None for a name."""
    try:
        return str(socket.getaddrinfo(host.removesuffix("."), None, flags=socket.AI_NUMERICHOST)[0][4][0])
    except (OSError, UnicodeError):
        return None
