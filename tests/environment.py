"""The environment of a test run, set before Django's settings are read (pytest loads this module first).

A data folder of its own, which goes at the end, and nothing of the developer's `.env`: no test can reach a real model.
Processes that tests start inherit it.
"""

import atexit
import os
import shutil
import tempfile

_folder = tempfile.mkdtemp(prefix="agentsite-tests-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)

for _name in [name for name in os.environ if name.startswith(("AGENTSITE_", "OPENAI_", "DJANGO_SUPERUSER_"))]:
    if _name != "AGENTSITE_REQUIRE_SERVICES":
        del os.environ[_name]
for _name in (
    "ALLOWED_HOSTS",
    "CSRF_TRUSTED_ORIGINS",
    "DEBUG",
    "EMAIL_HOST",
    "HOST",
    "PORT",
    "SECRET_KEY",
):
    os.environ.pop(_name, None)
os.environ["AGENTSITE_DATA"] = _folder
os.environ["AGENTSITE_DRAINS"] = "1"  # tests of several set how many
os.environ["AGENTSITE_ENV_FILE"] = os.devnull
