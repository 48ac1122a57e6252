"""The address of the public page, which a shared link leads to."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata

PAGE = "explore/"  # of the site
UNNAMED = "OWNER"  # pyproject.toml's word for an account that is not chosen yet


def public_page() -> str | None:
    """Return the address of the public explorer, or None while the package names none."""
    try:
        addresses = metadata("tallystick").get_all("Project-URL") or []
    except PackageNotFoundError:  # the sources alone are on the path
        return None
    site = next((one.partition(", ")[2] for one in addresses if one.startswith("Documentation, ")), None)
    return f"{site.rstrip('/')}/{PAGE}" if site and UNNAMED not in site else None
