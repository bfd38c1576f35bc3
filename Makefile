# Every target makes its own .venv from a hashed lock file first; a second run finds it there and does nothing.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m
# Two processes with one thread each for linear algebra: more threads than cores only wait for each other.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(RUN) pytest -n 2 --dist loadgroup

# Each stamp stands for one finished install. `demo` needs less than the rest: the core and the plots.
CORE := $(VENV)/.run-installed
DEV := $(VENV)/.dev-installed
TORCH := $(VENV)/.torch-tried

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Compiling and rewriting the tests takes half a minute; only __pycache__ saves it the next time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo survey-demo test test-long check lint fuzz bench papers docs dist lock format clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(CORE)  ## the main job on built-in data, in under a minute
	@$(VENV)/bin/rankdp demo

survey-demo: $(DEV)  ## a survey with 500 simulated respondents, in under a minute; on a terminal its pages stay open
	@$(VENV)/bin/python examples/survey.py $$(test -t 1 && echo --open)

test: $(DEV) $(TORCH)  ## lint, types, layers, docs, every test but the long ones
	@$(MAKE) --no-print-directory docs & $(MAKE) --no-print-directory lint; lint=$$?; wait $$! && exit $$lint
	@$(PYTEST) -m "not long"

test-long: $(DEV) $(TORCH)  ## the long ones, before a release: power studies, audits from end to end
	@$(PYTEST) -m long

check: lint  ## the fast part of it: lint, types, layers, unit tests
	@$(PYTEST) -m "not slow and not long"

lint: $(DEV)  ## style, types and layers alone
	@$(RUN) ruff check --quiet
	@$(RUN) ruff format --check --quiet
	@$(RUN) mypy --no-error-summary
	@said=$$($(VENV)/bin/lint-imports --no-logo 2>&1) || { echo "$$said"; exit 1; }

fuzz: $(DEV)  ## damaged files (FUZZ="--seed 1 --files 100000 --seconds 3600"), then raw rows (RANKDP_CASES=200)
	@$(RUN) tests.fuzzing $(FUZZ)
	@RANKDP_CASES=$${RANKDP_CASES:-200} $(PYTEST) tests/contracts/test_raw_rows.py

bench: $(DEV)  ## ours and the peers side by side, as ratios
	@$(RUN) benchmarks

papers: $(DEV)  ## every figure of the papers, into reproduction/ and docs/papers
	@$(VENV)/bin/rankdp reproduce --full --markdown docs/papers

dist: $(DEV)  ## the wheel, the sdist and a bill of materials, into dist/; checked, and the command is run from the wheel
	@export SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) && rm -rf dist && \
		$(RUN) build --no-isolation --outdir dist . >/dev/null && $(VENV)/bin/python locks/repack.py dist/*.tar.gz
	@$(RUN) twine check --strict dist/*.whl dist/*.tar.gz
	@$(VENV)/bin/python locks/sbom.py locks/run.txt > dist/sbom.json
	@$(RUN) pytest -q tests/test_distribution.py

docs: $(DEV)  ## build docs/_build/html, warnings are errors
	@$(RUN) sphinx --quiet --fail-on-warning --keep-going docs docs/_build/html

lock: $(DEV)  ## rewrite locks/*.txt, keeping versions (UPGRADE=--upgrade takes the newest)
	@$(COMPILE) --extra plots --extra spark --extra web --extra bench --extra test --extra docs --extra dev -o locks/dev.txt pyproject.toml
	@$(COMPILE) --extra plots --constraint locks/dev.txt -o locks/run.txt pyproject.toml

format: $(DEV)  ## let ruff lay out and repair the code
	@$(RUN) ruff check --quiet --fix
	@$(RUN) ruff format --quiet

clean:  ## remove .venv and everything built
	@rm -rf $(VENV) build dist src/*.egg-info docs/_build reproduction .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src tests benchmarks examples docs -name __pycache__ -prune -exec rm -rf {} +

# Only the CPU build whose hash is listed is taken; where it is not at hand, the tests that need PyTorch are skipped.
$(TORCH): locks/torch.txt $(DEV)
	@$(RUN) pip install -qq --require-hashes --no-deps -r $< 2>/dev/null || \
		echo "The CPU build of PyTorch in locks/torch.txt is not at hand: its tests will be skipped" >&2
	@touch $@

# No index, find-links or host is written; the build backend is pinned with the rest.
COMPILE = CUSTOM_COMPILE_COMMAND="make lock" $(RUN) piptools compile --quiet --generate-hashes --allow-unsafe \
	--strip-extras --no-emit-options --build-deps-for editable $(UPGRADE)

# An install that was interrupted leaves no .complete, and the next one starts from an empty environment.
$(VENV)/.%-installed: locks/%.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "rankdp needs Python 3.11 or newer, and '$(PYTHON)' is not: name one with make PYTHON=python3.12" >&2; exit 1; }
	@echo "Installing locks/$*.txt into $(VENV) (once, about a minute)" >&2
	@{ test -e $(VENV)/.complete && $(RUN) pip --version >/dev/null 2>&1; } || $(PYTHON) -m venv --clear $(VENV)
	@rm -f $(VENV)/.complete
	@$(RUN) pip install -qq --require-hashes -r $<
	@$(RUN) pip install -qq --no-deps --no-build-isolation -e .
	@touch $(VENV)/.complete $@
