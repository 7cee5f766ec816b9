"""The check before the switch: every link of the site leads to a page, and to an anchor on it, that is there."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field

NO_ICON = "data:,"
"""The icon of every page: none, so that no browser asks a server for one."""
_LINK = re.compile(r'\s(?:href|src|data-plotly)="([^"]*)"')
_ID = re.compile(r'\sid="([^"]*)"')


@dataclass(slots=True)
class LinkIndex:
    """Pages are added as they are written; text in them is escaped, so that a pattern finds attributes alone."""

    files: set[str] = field(default_factory=set)
    _ids: dict[str, set[str]] = field(default_factory=dict)
    _links: dict[str, set[str]] = field(default_factory=dict)

    def add_page(self, path: str, html: str) -> None:
        """Take up a page's links and anchors."""
        self.files.add(path)
        self._ids[path] = set(_ID.findall(html))
        self._links[path] = set(_LINK.findall(html))

    def dead_links(self) -> list[str]:
        """Return `page -> link` for every link that leads nowhere, or out of the site, sorted."""
        return sorted(
            f"{page} -> {link}"
            for page, links in self._links.items()
            for link in links
            if not self._resolves(page, link)
        )

    def _resolves(self, page: str, link: str) -> bool:
        place, _, anchor = link.partition("#")
        if link == NO_ICON:
            return True
        if ":" in place or place.startswith("/"):
            return False
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), place)) if place else page
        return target in self.files and (not anchor or anchor in self._ids.get(target, set()))
