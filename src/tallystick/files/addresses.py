"""Remote sources by address: repositories of the hub, files on the web, object stores."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from tallystick.errors import BadInput, nearest, quoted
from tallystick.extras import MissingExtra, needing, pip_install
from tallystick.files.http import DEADLINE, PATIENCE, Web
from tallystick.files.remote import NotThere, Piece, Remote, Tally

MOST_PAGES = 100  # of a repository's file list, each with a thousand files
LARGEST_LIST = 16_000_000  # bytes of all pages: about 30,000 files

_REPOSITORY = re.compile(r"([\w.-]+/[\w.-]+)(?:@(refs/(?:pr|convert)/[^/@]+|[^/@]+))?(?:/+(.*))?", re.ASCII)
_MAY_NOT = "it does not exist, or is private or gated: if you have access, set HF_TOKEN or run `hf auth login`"
_HUB = "https://huggingface.co"
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs"}  # scheme of a store -> the package that reads it for fsspec


def elsewhere(address: str) -> Remote:
    """Return the remote file or folder at an address.

    Args:
        address: ``hf://org/name[@revision][/folder or file]``, ``https://…/file``,
            ``s3://bucket/…`` or ``gs://bucket/…``.

    Raises:
        BadInput: if the address is not of these forms, or the package that reads it is missing.
    """
    written, _, rest = address.partition("://")
    scheme = written.lower()
    kinds: dict[str, Callable[[str], Remote]] = {"hf": _on_hub, "https": _on_web, "http": _on_web}
    kinds |= dict.fromkeys(_PACKAGES, _in_bucket)
    if scheme not in kinds:
        raise BadInput(
            f"{quoted(address)}: unsupported scheme {quoted(written)}{nearest(scheme, kinds)}; use"
            " hf://org/name, https://…, s3://… or gs://…",
            code="unsupported",
        )
    return kinds[scheme](f"{scheme}://{rest}")


# -- the hub --------------------------------------------------------------------------------------


def _on_hub(address: str) -> Remote:
    named = _REPOSITORY.fullmatch(address.removeprefix("hf://"))
    folder = [part for part in (named[3] or "").split("/") if part] if named else []
    revision = unquote(named[2]) if named and named[2] else None
    if named is None or not {".", ".."}.isdisjoint((*folder, *named[1].split("/"), *(revision or "").split("/"))):
        raise BadInput(
            f"{quoted(address)} names no repository: use hf://org/name, optionally with @revision or /folder",
            code="bad-value",
        )
    return Remote(_Hub(named[1], revision), "/".join(folder))


class _Hub:
    """Files of one repository, all at one commit."""

    def __init__(self, repository: str, revision: str | None) -> None:
        with needing("hf://"):
            from huggingface_hub import constants, get_token
        self._shown = f"hf://{repository}" + (f"@{revision}" if revision else "")
        if constants.HF_HUB_OFFLINE:
            raise BadInput(f"{self._shown} is not fetched: HF_HUB_OFFLINE is set", code="unreachable")
        if not _is_endpoint(constants.ENDPOINT):
            raise BadInput(
                f"HF_ENDPOINT is {quoted(constants.ENDPOINT)}, expected an address such as {_HUB}", code="bad-value"
            )
        self.tally = Tally()
        token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
        self._web = Web(self.tally, token, _MAY_NOT, elsewhere=True)
        self._api = f"{constants.ENDPOINT}/api/models/{repository}"
        info, _, _ = self._asked(f"{self._api}/revision/{quote(revision or 'main', safe='')}?expand=sha")
        commit = info.get("sha") if isinstance(info, dict) else None
        if not isinstance(commit, str) or not (commit.isascii() and commit.isalnum()):
            raise BadInput(f"{self._shown}: the hub names no commit", code="unreachable")
        self._commit, self._files = commit, f"{constants.ENDPOINT}/{repository}/resolve/{commit}"
        self.names = cache(self._names)

    def shown(self, key: str) -> str:
        """Return the address of a file or folder as the user would write it."""
        return f"{self._shown}/{key}" if key else self._shown

    def read(self, key: str, start: int, length: int) -> Piece:
        """Return a piece of a file."""
        return self._web.piece(f"{self._files}/{quote(key)}", start, length, self.shown(key))

    def _names(self, folder: str) -> Sequence[str]:
        names: list[str] = []
        page: str | None = f"{self._api}/tree/{self._commit}" + (f"/{quote(folder)}" if folder else "")
        left = LARGEST_LIST
        for _ in range(MOST_PAGES):
            if page is None:
                return names
            listed, page, size = self._asked(page)
            left -= size
            if left < 0:
                raise BadInput(
                    f"{self.shown(folder)}: its file list has more than {LARGEST_LIST:,} bytes",
                    code="too-large",
                )
            for one in listed if isinstance(listed, list) else ():
                path = one.get("path") if isinstance(one, dict) and one.get("type") == "file" else None
                names += [path.rpartition("/")[2]] if isinstance(path, str) else []
        raise BadInput(f"{self.shown(folder)} has more files than fit in {MOST_PAGES} pages", code="too-large")

    def _asked(self, address: str) -> tuple[Any, str | None, int]:
        """Return the hub's parsed answer, the address of the next page, and the bytes received."""
        content, more = self._web.document(address, self._shown)
        try:
            return json.loads(content), more, len(content)
        except (ValueError, RecursionError):
            raise BadInput(f"{self._shown}: the hub's answer is not JSON", code="malformed") from None


def _is_endpoint(address: str) -> bool:
    """Return whether requests can be sent to an address with paths appended."""
    try:
        parts = urlsplit(address)
        return (
            parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
        )
    except ValueError:
        return False


# -- the web --------------------------------------------------------------------------------------


def _on_web(address: str) -> Remote:
    try:
        parts = urlsplit(address)
        known = bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        known = False
    if not known or not address.isprintable() or " " in address:
        raise BadInput(f"{quoted(address)} is not the address of a file", code="bad-value")
    if "@" in parts.netloc:
        raise BadInput(
            f"an address of {parts.hostname} with a password is refused, because it would be printed", code="unsafe"
        )
    if f"https://{parts.hostname}" == _HUB and "/resolve/" not in parts.path:
        raise BadInput(
            f"{quoted(address)} is a web page: use hf://org/name, optionally with @revision or /file",
            code="bad-value",
        )
    if parts.path.endswith("/") or not parts.path:
        raise BadInput(f"{quoted(address)} is not a file: folders on the web cannot be listed", code="unsupported")
    return Remote(_Web(f"{parts.scheme}://{parts.netloc}", parts.path, parts.query), parts.path.lstrip("/"))


class _Web:
    """Files of one web host."""

    def __init__(self, host: str, path: str, query: str) -> None:
        self.tally = Tally()
        self._host, self._asked, self._query = host, path.lstrip("/"), query
        refused = "for a hub repository use hf://org/name, which accepts a token"
        self._web = Web(self.tally, None, refused, elsewhere=host == _HUB)

    def shown(self, key: str) -> str:
        """Return the address without its query, which may hold a secret."""
        return f"{self._host}/{key}"

    def names(self, folder: str) -> None:
        """Return None: folders on the web cannot be listed."""

    def read(self, key: str, start: int, length: int) -> Piece:
        """Return a piece of a file. The query is sent only for the file that the user named."""
        query = f"?{self._query}" if self._query and key == self._asked else ""
        return self._web.piece(f"{self._host}/{key}{query}", start, length, self.shown(key))


# -- object stores --------------------------------------------------------------------------------


def _in_bucket(address: str) -> Remote:
    scheme, _, rest = address.partition("://")
    bucket, _, key = rest.partition("/")
    if not bucket:
        raise BadInput(f"{quoted(address)} names no bucket: use {scheme}://bucket/folder", code="bad-value")
    return Remote(_Bucket(scheme, bucket), key.strip("/"))


class _Bucket:
    """Files of one bucket, read by fsspec and its package for this kind of store."""

    def __init__(self, scheme: str, bucket: str) -> None:
        self.tally = Tally()
        self._root = f"{scheme}://{bucket}"
        logging.getLogger(_PACKAGES[scheme]).addHandler(logging.NullHandler())  # errors are reported in one line
        try:
            import fsspec

            self._system = fsspec.filesystem(scheme, skip_instance_cache=True, use_listings_cache=False)
        except ImportError:
            raise MissingExtra(f"{scheme}:// needs {_PACKAGES[scheme]}: {pip_install('fsspec')}") from None
        self.names = cache(self._names)

    def shown(self, key: str) -> str:
        """Return the address of a file or folder."""
        return f"{self._root}/{key}" if key else self._root

    def read(self, key: str, start: int, length: int) -> Piece:
        """Return a piece of a file; its state is read each time, since the file may change."""
        address = self.shown(key)
        with self._asking(address):
            info = self._system.info(address, timeout=min(PATIENCE, self.tally.allowance.left()))
        end = min(start + length, info["size"])
        version = info.get("ETag") or info.get("etag")
        if start >= end:
            return Piece(b"", info["size"], version)
        with self._asking(address):
            seconds = min(DEADLINE, self.tally.allowance.left())
            content = self._system.cat_file(address, start=start, end=end, timeout=seconds)
            self.tally.allowance.read(len(content))
            return Piece(content, info["size"], version)

    def _names(self, folder: str) -> Sequence[str]:
        with self._asking(self.shown(folder)):
            seconds = min(PATIENCE, self.tally.allowance.left())
            listed = self._system.ls(self.shown(folder), detail=True, timeout=seconds)
        return [one["name"].rpartition("/")[2] for one in listed if one["type"] == "file"]

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Count a request, and turn the store's errors into one line.

        fsspec and each package for a store raise their own error types.
        """
        try:
            self.tally.allowance.request()
            yield
        except BadInput as error:
            raise BadInput(f"{what}: {error}", code=error.code) from None
        except FileNotFoundError:
            raise NotThere(f"{what} was not found") from None
        except TimeoutError:
            raise BadInput(f"{what}: the store did not answer in time", code="unreachable") from None
        except Exception as error:
            why = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise BadInput(f"{what} cannot be read with your credentials: {why}", code="unreadable") from None
