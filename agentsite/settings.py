"""Django's settings, from the environment; the README's table names each variable.

What this module reads is checked here: a value that makes no sense raises `CannotStart`, and nothing starts.
"""

from agentsite import logs
from agentsite.data import prepare, secret_key
from agentsite.databases import from_url
from agentsite.env import ROOT, environment
from agentsite.errors import CannotStart

env = environment()

# --- Where data lies -----------------------------------------------------------------------------------------------

BASE_DIR = ROOT
AGENTSITE_DATA = env.path("AGENTSITE_DATA", ROOT / "var")
_folder = prepare(AGENTSITE_DATA, env.path("AGENTSITE_WORKSPACES", AGENTSITE_DATA / "workspaces"))
AGENTSITE_WORKSPACES = _folder.workspaces  # one folder per conversation, where its commands run
MEDIA_ROOT = _folder.files
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o700

DATABASES = {"default": from_url(env.text("DATABASE_URL"), _folder.private)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Where the site is reached -------------------------------------------------------------------------------------

DEBUG = env.flag("DEBUG")
HOST = env.text("HOST", "127.0.0.1")
PORT = env.whole("PORT", 8000, least=1, most=65535)
SECRET_KEY = env.text("SECRET_KEY") or secret_key(_folder.private)
ALLOWED_HOSTS = env.items("ALLOWED_HOSTS")
if not ALLOWED_HOSTS:
    if HOST in {"0.0.0.0", "::"}:  # noqa: S104 - named here to be refused
        raise CannotStart(f"HOST={HOST} opens the site to the network: name the hosts people type in ALLOWED_HOSTS.")
    ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", HOST]
CSRF_TRUSTED_ORIGINS = env.items("CSRF_TRUSTED_ORIGINS")

# HTTPS is spoken by a proxy in front. Without it cookies are not Secure: a browser would not send them back over http,
# and nobody could log in on a machine of their own.
HTTPS = env.flag("AGENTSITE_HTTPS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]  # asked by monitors beside the proxy, in plain http
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0  # a year, as hstspreload.org asks
# Whether each subdomain speaks https, and whether browsers shall ship that as a fact, is the domain owner's to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"

# --- What the site is made of --------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "unfold",  # before the admin, whose templates it replaces
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_q",
    "agentsite",
    "agents",
    "conversations",
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
    "conversations.pages.policy.ContentPolicy",
]
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
USE_TZ = True
TIME_ZONE = "UTC"
UNFOLD = {
    "SITE_TITLE": "Agentsite",
    "SITE_HEADER": "Agentsite",
    "SHOW_VIEW_ON_SITE": False,
    "STYLES": ["conversations.admin.sidebar.stylesheet"],
    "SITE_ICON": "conversations.admin.sidebar.mark",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "conversations.admin.sidebar.mark"}],
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
    "DASHBOARD_CALLBACK": "conversations.admin.sidebar.index",
    "SIDEBAR": {"navigation": "conversations.admin.sidebar.navigation"},
}  # fmt: skip
LOGGING = logs.configuration(env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")))

# --- The model -----------------------------------------------------------------------------------------------------

DEMO = env.flag("AGENTSITE_DEMO")  # set by `serve` where the demo model answers; the pages say so
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
OPENAI_BASE_URL = env.url("OPENAI_BASE_URL", ("https", "http"))
AGENTSITE_MODEL_NORMAL = env.text("AGENTSITE_MODEL_NORMAL", "demo" if DEMO else "gpt-6.1-terra")
AGENTSITE_MODEL_HIGH = env.text("AGENTSITE_MODEL_HIGH", "demo" if DEMO else "gpt-6.1-sol")
AGENTSITE_MODEL_API = env.choice("AGENTSITE_MODEL_API", "responses", ("responses",))

# --- What a turn may use -------------------------------------------------------------------------------------------

AGENTSITE_MAX_ROUNDS = env.whole("AGENTSITE_MAX_ROUNDS", 10, least=1)  # model calls of one turn
AGENTSITE_TURN_SECONDS = env.number("AGENTSITE_TURN_SECONDS", 300, least=1)  # running time; waiting for people is free
AGENTSITE_TOOL_SECONDS = env.number("AGENTSITE_TOOL_SECONDS", 60, least=1, most=600)  # of a tool that names no limit
AGENTSITE_APPROVAL_HOURS = env.number("AGENTSITE_APPROVAL_HOURS", 24, least=0.01)  # then an approval expires

# --- The worker ----------------------------------------------------------------------------------------------------

AGENTSITE_WORKERS = env.whole("AGENTSITE_WORKERS", 2, least=2)  # one drains; another must be free for schedules
AGENTSITE_HOLD_PROMPTS = env.whole("AGENTSITE_HOLD_PROMPTS", 256, least=1)  # at once in one worker process
AGENTSITE_LEASE_SECONDS = env.number("AGENTSITE_LEASE_SECONDS", 30, least=0.5)  # a dead worker's prompts are taken over
AGENTSITE_RENEW_SECONDS = env.number("AGENTSITE_RENEW_SECONDS", 5, least=0.05)
AGENTSITE_SWEEP_SECONDS = env.number("AGENTSITE_SWEEP_SECONDS", 10, least=0.1)  # between looks for forgotten work
AGENTSITE_BEAT_SECONDS = env.number(
    "AGENTSITE_BEAT_SECONDS", 30, least=0.5
)  # silence after which a cluster is replaced
AGENTSITE_STOP_SECONDS = env.number("AGENTSITE_STOP_SECONDS", 30, least=0.1)  # for running effects at a stop
if AGENTSITE_RENEW_SECONDS * 2 > AGENTSITE_LEASE_SECONDS:
    raise CannotStart(
        "AGENTSITE_RENEW_SECONDS must be at most half of AGENTSITE_LEASE_SECONDS: one renewal may be late."
    )

REDIS_URL = env.url("REDIS_URL", ("redis", "rediss"))
Q_CLUSTER = {
    "name": "agentsite",
    "label": "Background tasks",
    "workers": AGENTSITE_WORKERS,
    # A task drains as long as there is work. Recovery is our own sweep's: a task longer than `retry` would run twice.
    "timeout": 86_400,
    "retry": 86_460,
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    # A task is only a wake-up: few wait in memory, few are kept as history.
    "queue_limit": 4,
    "save_limit": 50,
    **({"redis": REDIS_URL} if REDIS_URL else {"orm": "default", "poll": 0.2}),
}
