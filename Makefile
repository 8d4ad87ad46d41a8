# `make solve` and `make test` work on a fresh clone with nothing but python3, make and an index.
# With HASHES=1 both install only files whose SHA-256 is in hashes.txt or hashes-dev.txt.
VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: solve serve site test check fuzz kill format docs notebooks release clean

solve: $(VENV)/core
	$(VENV)/bin/tiltrm solve --watch

serve: $(VENV)/serve
	$(VENV)/bin/tiltrm serve

site: $(VENV)/export
	$(VENV)/bin/tiltrm site --out build/site

test: $(VENV)/dev
	$(VENV)/bin/python -m pytest -n 2

check: $(VENV)/dev
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(MAKE) test

# FUZZ_EXAMPLES of each of seventeen kinds; failing inputs are kept in tests/fuzz/corpus.
fuzz: $(VENV)/dev
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-4000} $(VENV)/bin/python -m pytest tests/fuzz -n 2

# kill -9 over train, evaluate, tune, solve --html and the server: nothing is lost, and results are the same.
kill: $(VENV)/dev
	$(VENV)/bin/python -m benchmarks.kill --trials 50

format: $(VENV)/dev
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

docs: $(VENV)/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict
	-$(VENV)/bin/tiltrm site --out site/play

notebooks: $(VENV)/dev
	$(VENV)/bin/python docs/notebook.py --store

release:
	scripts/release.sh

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	python3 -m venv $(VENV)

$(VENV)/core: pyproject.toml constraints.txt hashes.txt | $(VENV)/bin/python
ifdef HASHES
	$(PIP) --require-hashes -r hashes.txt
	$(PIP) --no-deps --no-build-isolation -e .
else
	$(PIP) -e .
endif
	touch $@

$(VENV)/serve: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[serve]"
	touch $@ $(VENV)/core

$(VENV)/export: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[export]"
	touch $@ $(VENV)/core

$(VENV)/dev: pyproject.toml constraints.txt hashes-dev.txt | $(VENV)/bin/python
ifdef HASHES
	$(PIP) --require-hashes -r hashes-dev.txt
	$(PIP) --no-deps --no-build-isolation -e .
else
	$(PIP) -e ".[dev]"
endif
	touch $@ $(VENV)/core

$(VENV)/docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[docs,export]"
	touch $@ $(VENV)/core
