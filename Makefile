# Each target sets up .venv by itself: with uv if it is installed, otherwise with pip.
# A stamp file beside the packages records that the lock was installed, so that the next run starts at once.

PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
RUN := .venv/.run.stamp
DEV := .venv/.dev.stamp
# The PostgreSQL server for `make test-all`: any server, with a user who may create databases.
POSTGRES ?= postgres://postgres@127.0.0.1:5432/agentsite
COMPILE = uv pip compile --quiet --upgrade --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

.PHONY: run test test-all test-browser test-crash test-clients test-postgres nightly lint lock

run: $(RUN) ## Start the site: web server, worker and, if no model is set up, the demo model.
	@$(BIN)/python manage.py serve

test: $(DEV) ## Run the tests that need no services, and report what was left out.
	@$(BIN)/python -m pytest -q -n auto --dist worksteal $(ARGS)

test-all: test-browser test-crash test-clients test-postgres ## Run the other tests. A missing service is a failure.

test-browser: $(DEV) ## Run the tests in a real Chromium.
	@AGENTSITE_REQUIRE_SERVICES=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m browser $(ARGS) tests/browser

test-crash: $(DEV) ## Run the tests that kill real processes, on SQLite and PostgreSQL.
	@AGENTSITE_REQUIRE_SERVICES=1 $(BIN)/python -m pytest -q -n 3 --dist worksteal -m crash $(ARGS) tests/crash tests/canary

test-clients: $(DEV) ## Install clients that others wrote, from a package index, and run them against a site.
	@AGENTSITE_REQUIRE_SERVICES=1 $(BIN)/python -m pytest -q -m clients $(ARGS) tests/clients

test-postgres: $(DEV) ## Run on PostgreSQL the tests that use the database, and those that need PostgreSQL.
	@DATABASE_URL=$(POSTGRES) AGENTSITE_REQUIRE_SERVICES=1 \
		$(BIN)/python -m pytest -q -n auto --dist worksteal -m "(database or postgres) and not (browser or crash)" $(ARGS)

nightly: $(DEV) ## Run everything there is, for hours. Interrupted, it goes on where it stopped.
	@POSTGRES=$(POSTGRES) .ci/nightly

lint: $(DEV) ## Check style, types, the direction of imports, and migrations.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python manage.py makemigrations --check --dry-run

# One lock for Python 3.11 to 3.13: the same versions everywhere, and Django's long-term support release.
lock: $(DEV) ## Update the locks to the newest versions that pyproject.toml allows.
	@PATH="$$PATH:$(CURDIR)/$(BIN)"; \
	echo "django<5.3" | $(COMPILE) pyproject.toml --constraint - --output-file requirements.lock && \
	$(COMPILE) pyproject.toml --extra dev --constraint requirements.lock --output-file requirements-dev.lock

# $(1): the lock to install from.
define install
	@test -n "$(PYTHON)" || { echo "Agentsite needs Python 3.11 or newer: install it, or set PYTHON=... to its path." >&2; exit 2; }
	@if command -v uv >/dev/null; then \
		test -x $(BIN)/python || uv venv --quiet --python "$$(command -v $(PYTHON))" .venv; \
		uv pip install --quiet --python $(BIN)/python --require-hashes -r $(1); \
	else \
		test -x $(BIN)/pip || $(PYTHON) -m venv .venv; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(1); \
	fi
	@touch $@
endef

$(RUN): requirements.lock
	$(call install,requirements.lock)

$(DEV): requirements-dev.lock
	$(call install,requirements-dev.lock)
