# Every target sets up what it needs in .venv; only Python ≥ 3.11, make and a package index are assumed.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: demo test lint browser format docs bench faults pictures paper clean

demo: .venv/.installed
	$(BIN)/lastarm demo

# Two files at a time, which is what two cores are for.
test: lint browser
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: .venv/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The report is tried in a real browser. Where there is none, Debian's is installed, if that is allowed;
# else its tests are skipped, and say so.
browser:
	@command -v chromium >/dev/null || test -x /usr/bin/chromium || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "installing Chromium, to try the report in it" \
	  && { apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1 \
	    || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; }; }; \
	} || echo "There is no Chromium, and it cannot be installed here: the report's page is not tried in a browser." \
	  "Install it (on Debian: apt-get install chromium) and run this again." >&2

format: .venv/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The site, which needs no network once it is built; a warning is an error.
docs: .venv/.installed-dev
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env docs site
	@echo 'Built: open site/index.html.'

# The peers live in an environment of their own, so that they never decide which versions the tests use.
# One part can do with a copy of a9a, with arrays X, y, X_test and y_test: make bench A9A=FILE.npz
# The league, the prices of looks and the chosen arms need a folder of recorded curves: make bench CURVES=FOLDER
bench: .venv-bench/.installed .venv-dask-ml/.installed browser
	.venv-bench/bin/python benchmarks/startup.py
	.venv-bench/bin/python benchmarks/decisions.py
	.venv-bench/bin/python benchmarks/batched.py
	.venv-bench/bin/python benchmarks/engines.py
	.venv-bench/bin/python benchmarks/scale.py
	.venv-bench/bin/python benchmarks/switching.py
	.venv-bench/bin/python benchmarks/opening.py
	.venv-bench/bin/python benchmarks/quality.py $(if $(A9A),--a9a $(A9A))
	$(if $(CURVES),.venv-bench/bin/python benchmarks/league.py $(CURVES))
	$(if $(CURVES),.venv-bench/bin/python benchmarks/prices.py $(CURVES))
	$(if $(CURVES),.venv-bench/bin/python benchmarks/adaptive.py $(CURVES))

# Every fault, tried in full: about an hour on two cores. Writes docs/faults.md.
faults: .venv/.installed-dev
	$(BIN)/python -m faults

pictures: .venv/.installed-dev browser
	$(BIN)/python docs/pictures/demo.py
	$(BIN)/python docs/pictures/idea.py
	$(BIN)/python docs/pictures/plots.py
	$(BIN)/python docs/pictures/report.py

# The whole paper on built-in data, in less than two hours on two cores; stopped, it goes on.
paper: .venv/.installed-dev
	$(BIN)/lastarm reproduce all --workers 2 --out docs/jamieson2015

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lastarm needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

.venv/.installed-dev: .venv/.installed
	$(PIP) -e '.[dev]'
	touch $@

.venv-bench/.installed: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip --disable-pip-version-check install --quiet -e '.[batched,dask,ray,report]' -r benchmarks/requirements.txt
	touch $@

# Dask-ML does not run with today's Dask.
.venv-dask-ml/.installed: benchmarks/requirements-dask-ml.txt
	$(PYTHON) -m venv .venv-dask-ml
	.venv-dask-ml/bin/python -m pip --disable-pip-version-check install --quiet -r $<
	touch $@

clean:
	rm -rf .venv .venv-bench .venv-dask-ml site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
