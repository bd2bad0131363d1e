"""Django's settings, read from the environment. docs/settings.md lists every variable.

All values are checked here: an invalid one raises `CannotStart`, and nothing starts.
"""

from datetime import timedelta

from django.templatetags.static import static

from agents.engine.tools.tool import Risk
from agents.search import languages
from agentsite import logs
from agentsite.data import prepare, secret_key
from agentsite.databases import default_drains, direct_from_url, from_url
from agentsite.env import ROOT, cores, environment
from agentsite.errors import CannotStart
from agentsite.hosts import from_here, is_everywhere

env = environment()
WEB_MOST = 64

# --- Where data lies -----------------------------------------------------------------------------------------------

BASE_DIR = ROOT
AGENTSITE_DATA = env.path("AGENTSITE_DATA", ROOT / "var")
_folder = prepare(AGENTSITE_DATA, env.path("AGENTSITE_WORKSPACES", AGENTSITE_DATA / "workspaces"))
AGENTSITE_WORKSPACES = _folder.workspaces  # one folder per conversation, where its commands run
MEDIA_ROOT = _folder.files
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000  # a form of 200 rows has several thousand; its length is limited apart

DATABASES = {"default": from_url(env.text("DATABASE_URL"), _folder.private)}
# For what does not work through a pooler (conversations.database.hints): the settings that differ there.
DATABASE_DIRECT = direct_from_url(env.text("DATABASE_DIRECT_URL"), DATABASES["default"])
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Where the site is reached -------------------------------------------------------------------------------------

DEBUG = env.flag("DEBUG")
HOST = env.text("HOST", "127.0.0.1")
EVERYWHERE = is_everywhere(HOST)  # whether the web server listens on all addresses
HOST_HERE = from_here(HOST)  # where this machine itself reaches it
_url_host = f"[{HOST_HERE}]" if ":" in HOST_HERE else HOST_HERE
PORT = env.whole("PORT", 8000, least=1, most=65535)
# Web processes that share the port. Half of the cores are left for the worker, and for what agents run.
AGENTSITE_WEB = env.whole("AGENTSITE_WEB", max(1, cores() // 2), least=1, most=WEB_MOST)
SECRET_KEY = env.text("SECRET_KEY") or secret_key(_folder.private)
if len(SECRET_KEY) < 32:
    raise CannotStart(
        f"SECRET_KEY has {len(SECRET_KEY)} characters, so sessions could be forged: set it to at least 32 random"
        ' characters, such as `python -c "import secrets; print(secrets.token_urlsafe(48))"` prints, or leave it out on'
        " a single host, which makes one itself."
    )
# Earlier keys, separated by blanks, as a key may have commas in it: what they signed or encrypted is still read.
SECRET_KEY_FALLBACKS = env.text("SECRET_KEY_FALLBACKS").split()
ALLOWED_HOSTS = env.items("ALLOWED_HOSTS")
if not ALLOWED_HOSTS:
    if EVERYWHERE:
        raise CannotStart(
            f"HOST={HOST} opens the site to the network: set ALLOWED_HOSTS to the hosts that people type."
        )
    ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", _url_host]
CSRF_TRUSTED_ORIGINS = env.items("CSRF_TRUSTED_ORIGINS")

# A proxy in front of the site handles HTTPS. Without it cookies are not Secure: a browser would not send them back over
# http, and nobody could sign in to a site on their own machine.
HTTPS = env.flag("AGENTSITE_HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
# With this prefix a browser accepts a cookie only from the host itself, over https, and from no other host of the
# domain.
_cookie = "__Host-" if HTTPS else ""
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_cookie}sessionid", f"{_cookie}csrftoken"
SESSION_COOKIE_AGE = 14 * 86_400  # then a person has to sign in again
# How many proxies write X-Forwarded-For, one after the other. Addresses further left can be forged by the sender.
AGENTSITE_PROXIES = env.whole("AGENTSITE_PROXIES", 1 if HTTPS else 0, most=10)
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]  # for monitors that bypass the proxy and use plain http
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0  # a year, as hstspreload.org requires
# HSTS for subdomains and the preload list of browsers are decisions of the domain's owner.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
# Django's defaults do the rest: HttpOnly, X-Frame-Options DENY, nosniff, and the referrer for the site itself only.

# --- What the site is made of --------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",  # before the admin, whose templates it replaces
    "agentsite.admin_app.AdminAppConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_q",
    "channels",
    "django_htmx",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "axes",
    "agentsite",
    "agents",
    "conversations",
    "workflows",
    *env.items("AGENTSITE_APPS"),
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "conversations.pages.csp.CspMiddleware",
    "conversations.accounts.another.AnotherPersonMiddleware",
    "conversations.database.disk.DiskFullMiddleware",
    "conversations.database.busy.BusyMiddleware",
    "axes.middleware.AxesMiddleware",  # last: it replaces the response to a locked login
]
AUTHENTICATION_BACKENDS = ["conversations.accounts.throttle.PasswordBackend"]
ROOT_URLCONF = "agentsite.urls"
ASGI_APPLICATION = "agentsite.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agentsite.context.site",
            ],
        },
    },
]
STATIC_URL = "/static/"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
UNFOLD = {
    "SITE_TITLE": "Agentsite",
    "SITE_HEADER": "Agentsite",
    "SHOW_VIEW_ON_SITE": False,
    "STYLES": [lambda _: static("conversations/admin.css"), lambda _: static("conversations/form.css")],
    "SCRIPTS": [lambda _: static("conversations/admin-live.js")],  # keeps the approval pages up to date
    "SITE_ICON": lambda _: static("conversations/mark.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda _: static("conversations/mark.svg")}],
    "COLORS": {  # those of the pages, in static/conversations/tokens.css
        "base": {
            "50": "#f8f7f5", "100": "#f0efeb", "200": "#e7e5e0", "300": "#d6d3cc", "400": "#9b988f", "500": "#67645c",
            "600": "#5c5952", "700": "#44423d", "800": "#302f2c", "900": "#191918", "950": "#121211",
        },
        "primary": {
            "50": "#edf2fc", "100": "#dbe5f9", "200": "#bcd0f6", "300": "#a5c2ff", "400": "#8fb4ff", "500": "#6f9bf2",
            "600": "#2457c5", "700": "#1d479f", "800": "#1b3b80", "900": "#1c2740", "950": "#141c2e",
        },
    },
    "DASHBOARD_CALLBACK": "conversations.admin.start.start",
    "ENVIRONMENT": "conversations.admin.sidebar.stopped",
    "THEME": "conversations.pages.theme.chosen",
    "SIDEBAR": {"navigation": "conversations.admin.sidebar.navigation"},
}  # fmt: skip
LOGGING = logs.configuration(env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")))

# --- Who signs in --------------------------------------------------------------------------------------------------

PASSWORD_RESET_TIMEOUT = 3600  # seconds that a link in an e-mail works
# Calls of these risks run only if whoever approves them has entered their password within the last ten minutes.
AGENTSITE_REAUTHENTICATE = env.some_of("AGENTSITE_REAUTHENTICATE", Risk)
# Sign-in attempts are counted per name and address, per address, and per network. Never by the name alone: then anybody
# could lock an administrator out from anywhere (conversations.accounts.throttle).
AXES_HANDLER = "conversations.accounts.throttle.Attempts"
AXES_CLIENT_IP_CALLABLE = "conversations.accounts.throttle.client_address"
AXES_LOCKOUT_CALLABLE = "conversations.accounts.throttle.locked"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address"]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False  # the page says when to try again, and that must stay true
AXES_DISABLE_ACCESS_LOG = True  # only failures are kept, and only until they no longer count
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
AXES_SENSITIVE_PARAMETERS = [  # request parameters that are never stored
    "username", "ip_address", "email", "csrfmiddlewaretoken", "old_password", "new_password1", "new_password2",
]  # fmt: skip

# --- E-mail --------------------------------------------------------------------------------------------------------

AGENTSITE_URL = env.url("AGENTSITE_URL", ("https", "http")).rstrip("/")  # the site's address, for links in e-mails
EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'console'}.EmailBackend"
EMAIL_PORT = env.whole("EMAIL_PORT", 587, least=1, most=65535)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD")
EMAIL_USE_SSL = EMAIL_PORT == 465  # the port for TLS from the start
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=True) and not EMAIL_USE_SSL
EMAIL_TIMEOUT = 10  # seconds for each answer of the mail server
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.mailbox("DEFAULT_FROM_EMAIL") or "agentsite@localhost"
if EMAIL_HOST and not env.text("DEFAULT_FROM_EMAIL"):
    raise CannotStart("EMAIL_HOST is set: set DEFAULT_FROM_EMAIL to the address that e-mails come from, too.")
if EMAIL_HOST and not AGENTSITE_URL and (HTTPS or EVERYWHERE):
    raise CannotStart("EMAIL_HOST is set: set AGENTSITE_URL to the address that links in e-mails lead to, too.")
AGENTSITE_URL = AGENTSITE_URL or f"http://{_url_host}:{PORT}"
AGENTSITE_MAIL_AFTER_SECONDS = env.number("AGENTSITE_MAIL_AFTER_SECONDS", 20)  # how long a turn waits before the e-mail
AGENTSITE_MAIL_EVERY_SECONDS = env.number("AGENTSITE_MAIL_EVERY_SECONDS", 300)  # least time between two to one person

# --- Webhooks ------------------------------------------------------------------------------------------------------

AGENTSITE_WEBHOOK_NETWORKS = env.networks("AGENTSITE_WEBHOOK_NETWORKS")  # private ones that webhooks are sent to

# --- Triggers ------------------------------------------------------------------------------------------------------

AGENTSITE_TRIGGERS_A_PERSON = env.whole("AGENTSITE_TRIGGERS_A_PERSON", 20)
AGENTSITE_TRIGGER_LEAST_SECONDS = env.whole("AGENTSITE_TRIGGER_LEAST_SECONDS", 300, least=1)  # between two of one
AGENTSITE_TRIGGER_FAILURES = env.whole("AGENTSITE_TRIGGER_FAILURES", 5, least=1)  # in a row, until it is switched off
AGENTSITE_TRIGGER_SPREAD_SECONDS = env.whole("AGENTSITE_TRIGGER_SPREAD_SECONDS", 60)  # so that not all start at once
AGENTSITE_HOOKS_A_MINUTE = env.whole("AGENTSITE_HOOKS_A_MINUTE", 1200, least=1)  # webhooks that one trigger takes
# How long a turn that a trigger started waits before those with the permission for it are told, besides its owner.
AGENTSITE_UNATTENDED_AFTER_SECONDS = env.number("AGENTSITE_UNATTENDED_AFTER_SECONDS", 3600)

# --- The API -------------------------------------------------------------------------------------------------------

KNOX_TOKEN_MODEL = "conversations.ApiKey"  # noqa: S105 - a model's name
# That model replaces the package's own table, which its migrations would still create.
MIGRATION_MODULES = {"knox": None}
REST_KNOX = {"AUTH_HEADER_PREFIX": "Bearer", "TOKEN_TTL": None, "TOKEN_MODEL": KNOX_TOKEN_MODEL}
AGENTSITE_API_REQUESTS = env.whole("AGENTSITE_API_REQUESTS", 600, least=1)  # per person and minute
AGENTSITE_API_STARTS = env.whole("AGENTSITE_API_STARTS", 60, least=1)  # of these, requests that start a turn
AGENTSITE_STREAMS = env.whole("AGENTSITE_STREAMS", 100, least=1)  # open streams and sockets per person; a page has two
CSRF_FAILURE_VIEW = "conversations.api.errors.csrf_failure"
REST_FRAMEWORK = {
    "EXCEPTION_HANDLER": "conversations.api.errors.handler",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "UNICODE_JSON": False,  # escapes invisible characters, and those that reverse the direction of text
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Agentsite API",
    "VERSION": "1",
    "DESCRIPTION": "Conversations with agents, their turns, and the approvals that they wait for.",
    "OAS_VERSION": "3.1.0",  # its schemas are JSON Schema, which our types produce
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "/static/conversations/mark.svg",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/",
    "POSTPROCESSING_HOOKS": [],
    "COMPONENT_SPLIT_REQUEST": False,
}

# --- The model -----------------------------------------------------------------------------------------------------

DEMO = env.flag("AGENTSITE_DEMO")  # set by `serve` if the demo model answers; the pages say so
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
OPENAI_BASE_URL = env.url("OPENAI_BASE_URL", ("https", "http"))
AGENTSITE_MODEL_NORMAL = env.text("AGENTSITE_MODEL_NORMAL", "demo" if DEMO else "gpt-6.1-terra")
AGENTSITE_MODEL_HIGH = env.text("AGENTSITE_MODEL_HIGH", "demo" if DEMO else "gpt-6.1-sol")
AGENTSITE_MODEL_FALLBACK = env.text("AGENTSITE_MODEL_FALLBACK")  # used if the turn's own model does not answer
AGENTSITE_MODEL_API = env.choice("AGENTSITE_MODEL_API", "responses", ("responses", "chat", "json"))
AGENTSITE_MODEL_NEEDS_USER = env.flag("AGENTSITE_MODEL_NEEDS_USER")  # its server insists on roles that alternate

# --- The models for other programs, under /v1 -------------------------------------------------------------------------

AGENTSITE_PASSTHROUGH_ALIASES = env.pairs("AGENTSITE_PASSTHROUGH_ALIASES")  # other names of models: name=model, ...
AGENTSITE_PASSTHROUGH_BODY_MB = env.whole("AGENTSITE_PASSTHROUGH_BODY_MB", 20, least=1, most=1000)  # of one request
AGENTSITE_PASSTHROUGH_REQUESTS_A_MINUTE = env.whole(
    "AGENTSITE_PASSTHROUGH_REQUESTS_A_MINUTE", 600
)  # per person; 0: any
AGENTSITE_PASSTHROUGH_REQUESTS_A_DAY = env.whole("AGENTSITE_PASSTHROUGH_REQUESTS_A_DAY", 0)  # likewise

# --- What a turn may use -------------------------------------------------------------------------------------------

AGENTSITE_MAX_ROUNDS = env.whole("AGENTSITE_MAX_ROUNDS", 10, least=1)  # model calls of one turn
AGENTSITE_TURN_SECONDS = env.number("AGENTSITE_TURN_SECONDS", 300, least=1)  # running time, without waiting for people
AGENTSITE_TOOL_SECONDS = env.number("AGENTSITE_TOOL_SECONDS", 60, least=1, most=600)  # for a tool without its own limit
AGENTSITE_PARSE_FAILURES = env.whole("AGENTSITE_PARSE_FAILURES", 3, least=1)  # unreadable answers in a row
AGENTSITE_HISTORY_TOKENS = env.whole("AGENTSITE_HISTORY_TOKENS", 100_000, least=1000)  # sent of earlier turns
AGENTSITE_RESULT_CHARACTERS = env.whole("AGENTSITE_RESULT_CHARACTERS", 16_000, least=500)  # sent of one tool's result
AGENTSITE_BLUEPRINT_TOKENS = env.whole("AGENTSITE_BLUEPRINT_TOKENS", 1500)  # of the blueprints in a round; 0: none
AGENTSITE_TOOL_TOKENS = env.whole("AGENTSITE_TOOL_TOKENS", 8000, least=1000)  # of the tools that an agent is offered
AGENTSITE_MEMORY_TOKENS = env.whole("AGENTSITE_MEMORY_TOKENS", 600, most=100_000)  # of memories; 0: no memory at all
AGENTSITE_SEARCH_LANGUAGE = env.choice(
    "AGENTSITE_SEARCH_LANGUAGE", "english", (*languages.LANGUAGES, languages.NO_LANGUAGE)
)
AGENTSITE_PROMPTS_AT_ONCE = env.whole("AGENTSITE_PROMPTS_AT_ONCE", 20)  # per person; 0: no limit
AGENTSITE_TOKENS_A_DAY = env.whole("AGENTSITE_TOKENS_A_DAY", 0)  # per person; 0: no limit
AGENTSITE_WORKSPACE_MB = env.whole("AGENTSITE_WORKSPACE_MB", 4096, least=1)  # of the folder of one conversation
AGENTSITE_WORKSPACE_FILES = env.whole("AGENTSITE_WORKSPACE_FILES", 100_000, least=100)
AGENTSITE_STORAGE_MB = env.whole("AGENTSITE_STORAGE_MB", 20_480)  # per person, files and workspaces; 0: no limit
AGENTSITE_UPLOAD_MB = env.whole("AGENTSITE_UPLOAD_MB", 20, least=1, most=1000)  # the largest file a person may attach
AGENTSITE_APPROVAL_HOURS = env.number("AGENTSITE_APPROVAL_HOURS", 24, least=0.01)  # then an approval expires

# --- The worker ----------------------------------------------------------------------------------------------------

# Processes that run turns: one for each core; on SQLite, which has one writer at a time, two at most by itself.
AGENTSITE_DRAINS = env.whole("AGENTSITE_DRAINS", default_drains(DATABASES["default"]), least=1, most=1000)
AGENTSITE_HOLD_PROMPTS = env.whole("AGENTSITE_HOLD_PROMPTS", 256, least=1)  # at once in one of these
AGENTSITE_LEASE_SECONDS = env.number("AGENTSITE_LEASE_SECONDS", 30, least=0.5)  # then another worker takes over
AGENTSITE_RENEW_SECONDS = env.number("AGENTSITE_RENEW_SECONDS", 5, least=0.05)
AGENTSITE_SWEEP_SECONDS = env.number("AGENTSITE_SWEEP_SECONDS", 10, least=0.1)  # between searches for forgotten work
AGENTSITE_BEAT_SECONDS = env.number(
    "AGENTSITE_BEAT_SECONDS", 30, least=0.5
)  # silence after which a cluster is replaced
AGENTSITE_START_SECONDS = env.number("AGENTSITE_START_SECONDS", 120, least=0.5)  # for a cluster's start, likewise
AGENTSITE_STOP_SECONDS = env.number("AGENTSITE_STOP_SECONDS", 30, least=0.1)  # at a stop, for running effects
# The user, and group, that sandboxed commands run as if the worker is root. It needs no entry in /etc/passwd.
AGENTSITE_SANDBOX_UID = env.whole("AGENTSITE_SANDBOX_UID", 65530, least=1, most=999_999)
if AGENTSITE_RENEW_SECONDS * 2 > AGENTSITE_LEASE_SECONDS:
    raise CannotStart(
        "AGENTSITE_RENEW_SECONDS must be at most half of AGENTSITE_LEASE_SECONDS: one renewal may be late."
    )

Q_CLUSTER = {
    "name": "agentsite",
    "label": "Background tasks",
    "workers": AGENTSITE_DRAINS + 1,  # drains never end; one more process is free for heartbeats and schedules
    # For the nightly check. A drain has no limit, and a second one with its number ends at once. Our own sweep does the
    # recovery.
    "timeout": 86_400,
    "retry": 86_460,
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    # A task is only a wake-up: only a few wait in memory or are kept as history.
    "poll": 1.0,  # seconds between looks for one: it starts a drain or is a heartbeat; messages need none
    "queue_limit": 4,
    "save_limit": 50,
    # The queue is in the database: another service could be down while the database works.
    "orm": "default",
}

# --- What nobody may read --------------------------------------------------------------------------------------------

# Values that are hidden in ledgers and logs (agents.engine.secrets). The first administrator's password is not one of
# them, because people choose ordinary words for theirs; the web server and the worker never get it (agentsite.serve).
AGENTSITE_SECRETS = [
    SECRET_KEY,
    *SECRET_KEY_FALLBACKS,
    OPENAI_API_KEY,
    EMAIL_HOST_PASSWORD,
    DATABASES["default"].get("PASSWORD") or "",
    DATABASE_DIRECT.get("PASSWORD") or "",
]
