# make demo | test | doctests | test-files | test-fast | measure | matrix | coverage | test-web | lint | types | docs | site | outputs | tree | walkthroughs | bench | architecture | architectures | survival |
# experiment: each sets up what it needs in .venv first. PYTHON chooses
# the interpreter.
PYTHON ?= python3
BIN := .venv/bin
# On Linux, PyPI's torch brings gigabytes of CUDA: TORCH_INDEX=https://download.pytorch.org/whl/cpu takes the one for CPUs.
INSTALL = $(BIN)/python -m pip install --quiet --constraint constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable
PYTEST_WORKERS ?= auto
# Modules are compiled once, not by each process that a test starts, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test doctests test-files test-fast measure matrix coverage test-web browser lint types docs site outputs tree walkthroughs bench architecture architectures survival experiment clean

# torch and transformers for the live module, and none of what the tests need; of these only what it imports is compiled.
demo: .venv/ready-for-demo
	@$(BIN)/python examples/demo.py

test: doctests test-files

# One process, which can run while others lint and build.
doctests: .venv/ready
	$(BIN)/python -m pytest --doctest-modules src

# A file's tests, and those of a group (loadgroup), run in one worker, whose torch keeps to one core, as there is a worker for each; the
# site is the one of `make docs`, where that is fresh.
test-files: .venv/ready
	OMP_NUM_THREADS=1 SITE=site $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup

# Without torch and transformers, which need not be installed: figures of theirs are the committed ones, and what needs more of them is
# skipped. This is what runs on each system and Python in CI, and from an unpacked sdist.
test-fast: .venv/ready-for-fast
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup --without-torch @tests/fast.txt

# What torch and transformers say of the tests' configs, measured and written to tests/measured: after an upgrade of these, a change of
# what measures or of what is drawn. Of a file that any of these tests asks nothing but what they ask remains.
MEASURED := answers/test_activations answers/test_compare answers/test_compute answers/test_memory answers/test_sharding \
	architectures/test_architectures architectures/test_bert architectures/test_every_type architectures/test_nested \
	architectures/test_options architectures/test_presets runtimes/test_cache
measure: .venv/ready
	OMP_NUM_THREADS=1 TALLYSTICK_MEASURE=write $(BIN)/python -m pytest -n $(PYTEST_WORKERS) $(MEASURED:%=tests/%.py)

# The main uses with each pair of torch and transformers that is supported, in environments of their own: gigabytes, and not
# in CI. TORCH_INDEX=https://download.pytorch.org/whl/cpu takes a tenth of them; PAIRS="2.6.0+4.57.6" names some.
matrix:
	$(PYTHON) tests/support/matrix.py $(PAIRS) $(if $(TORCH_INDEX),--torch-index $(TORCH_INDEX))

# The same tests, and the lines that none of them runs; apart, since watching every line takes as long again.
coverage: .venv/ready
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --doctest-modules --cov --cov-report=term-missing:skip-covered tests src

# The page of `tallystick explore` alone; `make test` has it too, where there is a Chromium.
test-web: browser .venv/ready
	$(BIN)/python -m pytest $(wildcard tests/web/test_explore_page*.py) $(if $(SCREENSHOTS),--screenshots $(SCREENSHOTS))

# The one without windows, where Debian has it: a page takes half the CPU. Any other serves as well.
APT = timeout 120 apt-get -o Acquire::Retries=0 -o Acquire::http::Timeout=15
browser:
	@command -v chromium-headless-shell || \
		{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && $(APT) update -qq && $(APT) install -qq -y chromium-headless-shell; } || \
		command -v chromium || command -v chromium-browser || command -v google-chrome || \
		{ test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq -y chromium; } || \
		{ echo "there is no Chromium: apt-get install chromium"; exit 2; }

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

# Whether everything that docs/python lists has a complete type, by pyright, which brings its own node.
types: .venv/ready
	$(BIN)/python -m pip install --quiet "pyright[nodejs]"
	$(BIN)/python docs/site/public_types.py

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html is the start page; to search it: python3 -m http.server -d site"

# The docs, and in explore/ the explorer, for any web host: Python is in it, from npm's pyodide. PRESETS names those drawn in advance.
site: docs
	@$(BIN)/python docs/site/explorer.py site/explore $(if $(PRESETS),--presets $(PRESETS))
	@echo "site/explore/ is the explorer: python3 -m http.server -d site"

# What the commands print and the Python gives on README and the pages, and the picture of a terminal.
outputs: .venv/ready
	$(BIN)/python docs/site/outputs.py README.md $(wildcard docs/*.md docs/*/*.md docs/*/*.ipynb)
	$(BIN)/python docs/site/terminal.py docs/terminal.svg docs/terminal-dark.svg
	$(BIN)/python docs/site/tied_presets.py docs/tied-presets.md
	PYTHONPATH=tests/support $(BIN)/python docs/site/outside_truth.py docs/outside-truth.md

# The file tree in CONTRIBUTING.md, from the first line of each file.
tree: .venv/ready
	$(BIN)/python docs/site/tree.py CONTRIBUTING.md

walkthroughs: .venv/ready
	$(BIN)/python tests/support/notebooks.py docs/walkthroughs/*.ipynb
	$(BIN)/ruff format docs/walkthroughs

bench: .venv/ready-for-bench
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/every_type.py
	$(BIN)/python benchmarks/exactness.py
	$(BIN)/python benchmarks/packed.py
	$(BIN)/python benchmarks/memory.py --write docs/memory-peers.md
	$(BIN)/python benchmarks/decoder_memory.py
	$(BIN)/python benchmarks/training.py $(if $(NANOGPT),--nanogpt $(NANOGPT))
	$(BIN)/python benchmarks/generation.py
	$(BIN)/python benchmarks/explorer.py

# The first file of a model type, and its entry in the tests: make architecture NAME=exaone LIKE=llama CONFIG=exaone/config.json
architecture: .venv/ready
	@$(BIN)/python tests/support/new_architecture.py $(NAME) $(if $(LIKE),--like $(LIKE)) $(if $(CONFIG),--config $(CONFIG))

architectures: .venv/ready
	$(BIN)/python docs/site/architectures.py docs/architectures.md

survival: .venv/ready
	$(BIN)/tallystick survive --format markdown > .survival.md
	sed 's/ *$$//' .survival.md > docs/survival.md
	rm .survival.md

experiment: .venv/ready
	$(BIN)/tallystick experiment tying --out .experiment
	cp .experiment/tying.md .experiment/tying.svg docs/

# Modules are compiled as they are first imported, since most of pip's 16,000 never are; the two large packages on every core, before
# sealed processes import them, which write nothing.
.venv/ready: .venv/python
	$(INSTALL) ".[test,lint]" --no-compile
	$(BIN)/python -m compileall -qq -j 0 .venv/lib/python*/site-packages/torch .venv/lib/python*/site-packages/transformers || true
	@touch $@

.venv/ready-for-fast: .venv/python
	$(INSTALL) ".[test-fast]"
	@touch $@

.venv/ready-for-demo: .venv/python
	$(INSTALL) ".[hf]" --no-compile
	@touch $@

.venv/ready-for-bench: .venv/ready
	$(INSTALL) ".[test,lint,bench]"
	$(BIN)/python -m pip install --quiet --no-deps llm-analysis==0.2.2
	@touch $@

.venv/python: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "tallystick needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv .venv
	@touch $@

clean:
	rm -rf .venv .matrix .demo .experiment site .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache
