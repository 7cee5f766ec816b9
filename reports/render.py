"""Frozen page models -> HTML. The one place that knows the template engine.

Autoescape is on, an unknown name is an error, and every text passes `visible` on its way out, so that no
template and no model can forget it. Templates are compiled once.
"""

from __future__ import annotations

from typing import Any, Protocol

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

import site_template
from reports import paths
from reports.charts import Chart
from reports.figure import figure, json_block
from reports.svg import svg
from reports.visible import visible

NAVIGATION = (
    ("Overview", paths.OVERVIEW),
    ("Bad machines", paths.BAD_MACHINES),
    ("Machines", paths.MACHINES),
    ("Failures", paths.FAILURES),
    ("Runs", paths.RUNS),
    ("Data", paths.DATA),
    ("Causes", paths.CAUSES),
)


class Page(Protocol):
    """What every page model has."""

    @property
    def path(self) -> str: ...

    @property
    def title(self) -> str: ...


class Renderer:
    """Compiled templates; `html` gives the text of one page."""

    def __init__(self) -> None:
        environment = Environment(
            loader=FileSystemLoader(site_template.FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_made_visible,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.globals |= {"navigation": NAVIGATION, "chart_svg": svg, "chart_json": _chart_json}
        self._environment = environment
        self._templates: dict[str, Template] = {}

    def html(self, template: str, page: Page) -> str:
        """Return a page's HTML; `template` is its name without ending, e.g. `run`."""
        if template not in self._templates:
            self._templates[template] = self._environment.get_template(f"{template}.html.j2")
        return self._templates[template].render(page=page, root=paths.way_to_root(page.path))


def _made_visible(value: Any) -> Any:
    """Our own drawings (Markup) are passed on; every other text has its control characters made visible."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _chart_json(chart: Chart) -> Markup:
    return json_block(figure(chart))
