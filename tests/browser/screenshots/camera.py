"""How pages are looked at: four variants, each a browser of its own with somebody signed in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from tests.browser.conftest import Site

SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
STILL = "*, *::before, *::after { animation: none !important; transition: none !important; caret-color: transparent }"


@dataclass
class Camera:
    """One variant: `page` is of somebody who is signed in, `stranger` of somebody who is not.

    `demo_url` is where the same site looks as if the demo model answered.
    """

    name: str
    site: Site
    demo_url: str
    page: Page
    stranger: Page
    conversations: dict[str, int]

    @property
    def is_phone(self) -> bool:
        """Whether the window is narrow."""
        return self.name.startswith("phone")

    def goes(self, path: str) -> Page:
        """Open an address of the site."""
        self.page.goto(f"{self.site.url}{path}")
        return self.page

    def opens(self, conversation: str, more: str = "") -> Page:
        """Open a conversation by its name."""
        return self.goes(f"/c/{self.conversations[conversation]}/{more}")

    def takes(self, page: Page, file: Path) -> None:
        """Take the picture, of what stands still."""
        page.wait_for_load_state()
        page.evaluate("document.fonts.ready")
        file.write_bytes(page.screenshot(style=STILL))


@contextmanager
def variants(browser: Browser, site: Site, demo_url: str, conversations: dict[str, int]) -> Iterator[list[Camera]]:
    """All four."""
    contexts: list[BrowserContext] = []
    cameras: list[Camera] = []
    for theme in THEMES:
        for size, viewport in SIZES.items():
            looks: Any = {"viewport": viewport, "color_scheme": theme, "has_touch": size == "phone"}
            known = browser.new_context(**looks)
            unknown = browser.new_context(**looks, extra_http_headers={"X-Forwarded-For": f"192.0.2.{len(cameras)}"})
            contexts += [known, unknown]
            page = known.new_page()
            page.goto(f"{site.url}/login/")
            page.get_by_label("User name").fill(site.username)
            page.get_by_label("Password").fill(site.password)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(f"{site.url}/")
            cameras.append(Camera(f"{size}-{theme}", site, demo_url, page, unknown.new_page(), conversations))
    yield cameras
    for context in contexts:
        context.close()
