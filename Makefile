# Every target sets up what it needs in .venv; only Python ≥ 3.11, make and a package index are assumed.
# What is installed are the versions of constraints.txt, with which the tests were seen to pass.
PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
BIN := $(VENV)/bin
NEWEST := --upgrade --upgrade-strategy eager
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS),$(NEWEST))

# For `make pythons`. One that is not on the PATH is looked for among pyenv's. For others, say:
# make pythons PYTHONS='/usr/bin/python3 /opt/python/bin/python3.14'
PYTHONS := python3.11 python3.12 python3.13 python3.14

.PHONY: demo test check frameworks lint browser format docs bench arena faults pictures paper clean test-newest pythons constraints installed-dev

newest = .venv-newest-$(shell $(1) -c 'import platform; print(platform.python_version())')

# Does something with every one of PYTHONS that is here, and says at the end how it went.
define with_each_python
@passed= failed= absent=; for name in $(PYTHONS); do \
  python=; for one in "$$name" "$$HOME"/.pyenv/versions/*/bin/"$$name"; do \
    "$$one" -c '' 2>/dev/null && { python=$$one; break; }; \
  done; \
  test -n "$$python" || { absent="$$absent $$name"; continue; }; \
  version=$$("$$python" -c 'import platform; print(platform.python_version())'); \
  echo "Python $$version, $$python:"; \
  $(1) && passed="$$passed $$version" || failed="$$failed $$version"; \
done; \
echo "Passed:$${passed:- none}. Failed:$${failed:- none}. Not on this machine, and skipped:$${absent:- none}."; \
test -z "$$failed" && test -n "$$passed"
endef

demo: $(VENV)/.installed
	$(BIN)/lastarm demo

# Three files at a time on two cores, since many tests wait; the longest first (conftest.py), so that none is left at the end.
test: lint browser
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

# What takes less than a minute, to run while you work.
check: lint
	$(BIN)/python -m pytest --numprocesses 2 tests/test_laws.py tests/test_rooms.py tests/test_import.py

# A version whose build for processors is at hand: any other may bring gigabytes for graphics cards. What pip is given may
# also be a file, or have --index-url, with the address of an index that has such builds.
TORCH := torch==2.13.0

# What needs a package that the core is not tested with, in environments of its own.
frameworks: .venv-frameworks/.installed .venv-dask-ml/.installed
	.venv-frameworks/bin/python -m pytest -m frameworks -rs tests/test_callbacks.py tests/test_catboost.py tests/test_examples.py \
	  tests/test_loggers.py tests/test_torch.py tests/test_torch_together.py
	.venv-frameworks/bin/python -m pytest src/lastarm/torch
	.venv-dask-ml/bin/python examples/coming_from/dask_ml_hyperband.py

# With the newest versions of everything: what has changed in other packages is seen here, on purpose.
test-newest:
	rm -f $(call newest,$(PYTHON))/.installed*
	$(MAKE) VENV="$(call newest,$(PYTHON))" CONSTRAINTS= test

# Every one in an environment of its own.
pythons:
	$(call with_each_python,$(MAKE) PYTHON="$$python" VENV=".venv-$$version" test)

# Writes constraints.txt anew, from the newest versions for each Python; `make pythons` then says whether they pass.
constraints:
	rm -rf .venv-newest-*
	$(call with_each_python,$(MAKE) PYTHON="$$python" VENV=".venv-newest-$$version" CONSTRAINTS= installed-dev)
	$(PYTHON) .ci/constraints.py constraints.txt .venv-newest-*/bin/python

lint: $(VENV)/.installed-dev
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

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The site, which needs no network once it is built; a warning is an error.
docs: $(VENV)/.installed-dev
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --fresh-env docs site
	@echo 'Built: open site/index.html.'

# The peers live in an environment of their own, so that they never decide which versions the tests use.
# Two parts can do with a copy of a9a, with arrays X, y, X_test and y_test: make bench A9A=FILE.npz
# The league, the prices of looks and the chosen arms need a folder of recorded curves: make bench CURVES=FOLDER
bench: .venv-bench/.installed .venv-dask-ml/.installed browser
	.venv-bench/bin/python benchmarks/startup.py
	.venv-bench/bin/python benchmarks/decisions.py
	.venv-bench/bin/python benchmarks/batched.py
	.venv-bench/bin/python benchmarks/engines.py
	.venv-bench/bin/python benchmarks/pulls.py
	.venv-bench/bin/python benchmarks/scale.py
	.venv-bench/bin/python benchmarks/switching.py
	.venv-bench/bin/python benchmarks/opening.py
	.venv-bench/bin/python benchmarks/quality.py $(if $(A9A),--a9a $(A9A))
	.venv-bench/bin/python benchmarks/models.py $(if $(A9A),--a9a $(A9A))
	.venv-bench/bin/python benchmarks/rows.py
	.venv-bench/bin/python benchmarks/networks.py
	$(if $(CURVES),.venv-bench/bin/python benchmarks/league.py $(CURVES))
	$(if $(CURVES),.venv-bench/bin/python benchmarks/prices.py $(CURVES))
	$(if $(CURVES),.venv-bench/bin/python benchmarks/adaptive.py $(CURVES))

# How good the configs are that searches find, against peers: benchmarks/arena/README.md. Stopped, it goes on.
# make arena SURROGATES=FOLDER CURVES=FOLDER DATA=FOLDER plays all of it; ARENA="--seeds 3 --most 50", a part.
# DEHB plays first, in an environment of its own.
arena: .venv-bench/.installed .venv-dehb/.installed
	$(call play_arena,.venv-dehb) --apart
	$(call play_arena,.venv-bench)

play_arena = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONWARNINGS=ignore PYTHONPATH=benchmarks $(1)/bin/python -m arena \
  $(if $(SURROGATES),--surrogates $(SURROGATES)) $(if $(CURVES),--curves $(CURVES)) $(if $(DATA),--data $(DATA)) $(ARENA)

# Every fault, tried in full where the code has changed since: up to three hours on two cores, in parts of at most 30
# minutes. Writes docs/faults.md after each part; stopped, it goes on.
faults: $(VENV)/.installed-dev
	$(BIN)/python -m faults

pictures: $(VENV)/.installed-dev browser
	$(BIN)/python docs/pictures/demo.py
	$(BIN)/python docs/pictures/choosing.py
	$(BIN)/python docs/pictures/idea.py
	$(BIN)/python docs/pictures/plots.py
	$(BIN)/python docs/pictures/report.py

# The whole paper on built-in data, in less than two hours on two cores; stopped, it goes on.
paper: $(VENV)/.installed-dev
	$(BIN)/lastarm reproduce all --workers 2 --out docs/jamieson2015

$(VENV)/.installed: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lastarm needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

installed-dev: $(VENV)/.installed-dev

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) -e '.[dev]'
	touch $@

.venv-bench/.installed: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip --disable-pip-version-check install --quiet -e '.[batched,dask,ray,report]' -r benchmarks/requirements.txt
	touch $@

# DEHB does not run with NumPy 2, and other peers do not run without it.
.venv-dehb/.installed: pyproject.toml benchmarks/requirements-dehb.txt
	$(PYTHON) -m venv .venv-dehb
	.venv-dehb/bin/python -m pip --disable-pip-version-check install --quiet -e '.[plot]' -r benchmarks/requirements-dehb.txt
	touch $@

.venv-frameworks/.installed: pyproject.toml examples/requirements.txt
	$(PYTHON) -m venv .venv-frameworks
	.venv-frameworks/bin/python -m pip --disable-pip-version-check install --quiet $(TORCH)
	.venv-frameworks/bin/python -m pip --disable-pip-version-check install --quiet -e '.[torch,lightning,transformers,keras]' \
	  -r examples/requirements.txt
	touch $@

# Dask-ML does not run with today's Dask.
.venv-dask-ml/.installed: benchmarks/requirements-dask-ml.txt
	$(PYTHON) -m venv .venv-dask-ml
	.venv-dask-ml/bin/python -m pip --disable-pip-version-check install --quiet -r $<
	touch $@

clean:
	rm -rf .venv .venv-* site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
