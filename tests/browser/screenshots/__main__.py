"""`python -m tests.browser.screenshots [--only NAME] [--to FOLDER] [--readme]`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tests.environment  # noqa: F401 - before the settings are read: none of the developer's own
from tests.agentsite.processes import ROOT, free_port, run, started, wait_for
from tests.browser.conftest import Site, browsing, is_healthy, serving
from tests.browser.screenshots.camera import variants
from tests.browser.screenshots.pages import PAGES
from tests.browser.screenshots.png import reduced
from tests.browser.screenshots.turns import TURNS
from tests.conftest import find_chromium

README = (
    "chat-command-desktop-light",
    "chat-diff-desktop-dark",
    "chat-chart-desktop-light",
    "admin-approvals-desktop-light",
    "list-phone-light",
)
"""The pictures that the README shows."""
README_FOLDER = ROOT / "docs" / "screenshots"
README_BYTES_MOST = 150_000
SITE = {
    "AGENTSITE_APPS": "tests.browser.screenshots.app",
    "AGENTSITE_TURN_SECONDS": "3600",  # one turn streams for as long as pictures are taken
    "AGENTSITE_PROXIES": "1",  # strangers come from addresses of their own: one is locked out, others are not
    # a worker that is lost is missed soon
    "AGENTSITE_LEASE_SECONDS": "2",
    "AGENTSITE_RENEW_SECONDS": "0.5",
    "AGENTSITE_SWEEP_SECONDS": "0.5",
}
FILL_SECONDS = 300.0
FILL = "from tests.browser.screenshots.company import fill; import json; print(json.dumps(fill()))"


def take(to: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Take the pictures whose names are wanted, of a site made for it. Ends the program where there is no browser."""
    chromium = find_chromium() or sys.exit("This needs Chromium: install the package `chromium`.")
    to.mkdir(parents=True, exist_ok=True)
    files = []
    with (
        tempfile.TemporaryDirectory(prefix="screenshots-") as folder,
        serving(Path(folder), TURNS, "mara", **SITE) as site,
        browsing(chromium) as browser,
        demo(site, Path(folder)) as demo_url,
        variants(browser, site, demo_url, filled(site)) as cameras,
    ):
        for name, view in PAGES.items():
            for camera in cameras:
                if wanted(f"{name}-{camera.name}"):
                    files.append(to / f"{name}-{camera.name}.png")
                    camera.takes(view(camera), files[-1])
    return files


@contextmanager
def demo(site: Site, folder: Path) -> Iterator[str]:
    """The same site, as it looks where the demo model answers."""
    url = f"http://127.0.0.1:{free_port()}"
    environment = {**site.environment, "PORT": url.rpartition(":")[2], "AGENTSITE_DEMO": "1"}
    with started("-m", "agentsite.web", environment=environment, log=folder / "demo.log"):
        wait_for(lambda: is_healthy(url))
        yield url


def filled(site: Site) -> dict[str, int]:
    """The site with the company's work in it; where each conversation is, by name."""
    command = ("manage.py", "shell", "--verbosity", "0", "--command", FILL)
    made = run(*command, environment=site.environment, seconds=FILL_SECONDS)
    if made.returncode:
        sys.exit(f"The site could not be filled.\n{made.stderr}")
    conversations: dict[str, int] = json.loads(made.stdout)
    return conversations


def main() -> None:
    """Take the pictures, and say where they are."""
    parser = argparse.ArgumentParser(prog="python -m tests.browser.screenshots", description=__doc__)
    parser.add_argument("--only", metavar="NAME", default="", help="those whose name begins so, such as chat-command")
    parser.add_argument("--to", metavar="FOLDER", type=Path, default=ROOT / "var" / "screenshots")
    parser.add_argument("--readme", action="store_true", help="those of the README, into docs/screenshots")
    options = parser.parse_args()
    if options.readme:
        files = take(README_FOLDER, README.__contains__)
        for file in files:
            file.write_bytes(reduced(file.read_bytes()))
        if large := [file.name for file in files if file.stat().st_size > README_BYTES_MOST]:
            sys.exit(f"Too large for the README: {', '.join(large)}")
    else:
        files = take(options.to, lambda name: name.startswith(options.only))
    if not files:
        sys.exit(f"No page is called {options.only}: there are {', '.join(PAGES)}.")
    sys.stdout.write("".join(f"{file}\n" for file in files))


if __name__ == "__main__":
    main()
