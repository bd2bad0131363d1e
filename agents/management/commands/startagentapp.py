from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.templates import TemplateCommand

TEMPLATE = Path(__file__).parents[2] / "app_template"


class Command(TemplateCommand):
    help = (
        "Write an app with a tool, a plugin, a policy, a workflow, a kind of output and a service, and a test of "
        "each: something to start from. It is written into the current folder."
    )
    missing_args_message = "Name the app, such as: manage.py startagentapp stock"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="Its name, a Python module that does not exist yet.")
        parser.add_argument("directory", nargs="?", help="A folder to write it into, instead of a new one of its name.")

    def handle(self, **options: Any) -> None:  # type: ignore[override]
        name, target = options.pop("name"), options.pop("directory")
        options |= {"template": str(TEMPLATE), "extensions": ["py", "html"], "files": [], "exclude": []}
        super().handle("app", name, target, **options)
        self.stdout.write(f"Written. Add it to the site with AGENTSITE_APPS={name} in .env, and see docs/extending.md.")
