# The README's commands. Everything happens in a virtual environment of its own, beside this file.
PYTHON ?= $(shell for each in python3.13 python3.12 python3.11 python3; do \
	"$$each" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$each" && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check apt clean

demo: $(VENV)/.all
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh demo

# Debian's redis-server and chromium are installed where that is possible; elsewhere all other tests run, what is
# missing is named, and the command ends with 1.
test: $(VENV)/.dev apt
	$(BIN)/python -m pytest -q -n 2 $(shell command -v redis-server >/dev/null || echo "-m 'not redis'")
	@if python3.13 -c 'import venv' 2>/dev/null; then $(MAKE) test-3.13; fi
	@command -v redis-server >/dev/null || { echo "make test: redis-server is missing; its tests did not run" >&2; exit 1; }

.PHONY: test-3.13
test-3.13:
	test -e .venv-3.13/.dev || { python3.13 -m venv .venv-3.13 && .venv-3.13/bin/python -m pip install -q -e '.[dev]' && touch .venv-3.13/.dev; }
	.venv-3.13/bin/python -m pytest -q -n 2 -m 'not redis and not browser and not slow'

apt:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { command -v redis-server && command -v chromium; } >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server chromium >/dev/null; fi

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy

$(VENV)/.all: pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer with its venv module was not found; install it, or name it: make PYTHON=/path/to/python demo" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e '.[all]'
	touch $@

$(VENV)/.dev: pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer with its venv module was not found; install it, or name it: make PYTHON=/path/to/python test" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .venv-3.13 build dist demo
