# The README's commands. Everything happens in a virtual environment of its own, beside this file.
PYTHON ?= $(shell for each in python3.13 python3.12 python3.11 python3; do \
	"$$each" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$each" && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: test check clean

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy

$(VENV)/.dev: pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer with its venv module was not found; install it, or name it: make PYTHON=/path/to/python test" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist
