# `make demo` and `make test` are all a newcomer needs; each sets up what it uses in .venv.
SHELL := /bin/bash
.DELETE_ON_ERROR:

PYTHON ?= python3
CXX ?= g++
VENV := .venv
BIN := $(VENV)/bin
# What mypy reads of libcudf, 10 MB: without its libraries (1 GB) it cannot be imported, so it stays off the path.
STUBS := pylibcudf-cu13==26.10.2 rmm-cu13==26.10.0
# What the extension is made of; Python files are used in place (editable install).
NATIVE := pyproject.toml CMakeLists.txt $(shell find bamquery driver storage -name '*.cpp' -o -name '*.hpp')
FORMATTED := $(filter %.cpp %.hpp,$(NATIVE)) $(wildcard driver/kernels/*.cu engine/kernels/*.cu engine/kernels/*/*.cu)

.PHONY: demo test test-most test-rest test-fast record-seconds test-slow test-qemu test-forms test-torch test-tsan random-queries random-casts random-calls random-files fuzz mutation lint style types format docs build check-tools clean

demo: $(VENV)/.installed-demo ## load real and generated trips, answer Q1-Q5, check them, draw
	$(BIN)/bamquery taxi demo demo

test: $(VENV)/.installed-test style ## what lint checks, and each test that takes less than a quarter of a second: nine of ten
	@$(MAKE) --no-print-directory --jobs 2 types test-most  # types take a minute of one core: beside the tests, none is idle

test-most: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "not slow" --take most -n auto --dist worksteal

test-rest: $(VENV)/.installed-test ## of each of the others as many cases as take a second, but one at least: crashes, generators, long queries
	$(BIN)/python -m pytest -m "not slow" --take rest -n auto --dist worksteal

# Of plans, functions, operators and fragments on the CPU; without devices, crashes, generators, programs and documents.
FAST := golden sql/test_slt.py unit/plan unit/sql_frontend unit/function_catalog unit/engine/cpu unit/engine/operators \
  unit/engine/profiling unit/engine/sources unit/engine/formulas unit/engine/explain unit/storage/statistics \
  unit/storage/fragments unit/storage/encodings unit/storage/readers unit/storage/read_planner unit/storage/database \
  unit/face/connection unit/face/relations unit/face/session unit/face/catalog unit/face/errors docs/test_names_in_pages.py
test-fast: $(VENV)/.installed-test ## for the inner loop: of the tests of these rooms those that take little (tests/selection/recorded_seconds.py)
	$(BIN)/python -m pytest -q -m "not slow and not long" --take fast -n auto --dist worksteal $(addprefix tests/,$(FAST))

record-seconds: $(VENV)/.installed-test ## all tests, and which of them take long
	$(BIN)/python -m pytest -q -m "not slow" --record-seconds -n auto --dist worksteal

test-slow: $(VENV)/.installed-test ## the long proofs, the long forms of others, and the cases that test-rest leaves out
	$(BIN)/python -m pytest -m "slow or long" --long --timeout 3600
	$(BIN)/python -m pytest -m "not slow and not long" --take beyond -n auto --dist worksteal

GUESTS ?= not long
test-qemu: $(VENV)/.installed-test ## QEMU guests with NVMe drives behind a virtual IOMMU: needs apt, and root the first time; GUESTS="long or not long" boots all
	$(BIN)/python -m pytest -q --guests -m "$(GUESTS)" -n 2 --dist loadfile tests/guests/boots

FORMS := packed integer unscaled decimal float32 escapes raw fsst
test-forms: $(VENV)/.installed-test ## operators and SQL over packed tables, all vectors in one form, then in the next
	set -e; for form in $(FORMS); do echo "form $$form"; \
	  $(BIN)/python -m pytest -q -m "not slow" -n auto tests/conformance tests/sql/test_slt.py --form $$form; done

TORCH ?= torch==2.13.0
test-torch: $(VENV)/.installed-test ## tensors; torch is large, so it is no part of `make test`
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pytest tests/unit/face/frames/test_torch.py

SECONDS_OF_RACES ?= 60
TSAN := -O1 -g1 -DNDEBUG -fsanitize=thread -Wno-tsan
test-tsan: $(VENV)/.installed-test ## native code on many threads under ThreadSanitizer: a build of its own (ten minutes), then queries
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'cmake>=3.21' ninja 'pybind11>=3.0'
	CXX=$(CXX) $(BIN)/cmake -G Ninja -S . -B build/tsan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$(TSAN)" \
	  -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -Dpybind11_DIR=$$($(BIN)/python -m pybind11 --cmakedir)
	$(BIN)/ninja -C build/tsan
	CXX=$(CXX) $(BIN)/python -m tests.races.run build/tsan --seconds $(SECONDS_OF_RACES)

N ?= 100000
SEED ?= 1000
random-queries: $(VENV)/.installed-test ## as many as N says, answered by DuckDB too
	$(BIN)/python -m tests.sql.randomized.run --queries $(N) --seed $(SEED) --jobs $$(nproc)

fuzz: $(VENV)/.installed-test ## N/20 damaged files, N/40 databases, N/10 statements, N/600 kills
	$(BIN)/python -m tests.fuzz.run --databases $$(($(N) / 40)) --files $$(($(N) / 20)) --statements $$(($(N) / 10)) --kills $$(($(N) / 600)) --seed $(SEED) --jobs $$(nproc)

ROOM ?= windows
JOBS ?= $$(nproc)
mutation: N = 150
mutation: SEED = 1
mutation: $(VENV)/.installed-test ## N faults put into ROOM, one at a time: how many of them its tests find (docs/testing.md)
	$(BIN)/python -m tests.mutation.run --room $(ROOM) --mutants $(N) --seeds $(SEED) --jobs $(JOBS)

random-casts: $(VENV)/.installed-test ## casts and operators over extreme values, answered by DuckDB too
	$(BIN)/python -m tests.sql.randomized.casts.run --casts $(N) --seed $(SEED) --jobs $$(nproc)

random-calls: $(VENV)/.installed-test ## calls of every function with arguments at the ends of types, answered by DuckDB too
	$(BIN)/python -m tests.sql.randomized.casts.calls --calls $(N) --seed $(SEED) --jobs $$(nproc)

random-files: $(VENV)/.installed-test ## CSV and JSON files, as many as N says, looked at by DuckDB too
	$(BIN)/python -m tests.sql.randomized.files.compare --files $(N) --seed $(SEED) --jobs $$(nproc)

lint: style types ## all that is not run

style: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(FORMATTED)
	$(BIN)/codespell

types: $(VENV)/.installed-test
	$(BIN)/mypy

format: $(VENV)/.installed-test ## apply what lint checks
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(FORMATTED)

docs: $(VENV)/.installed-docs ## the site, in build/site; then that its pages ask for nothing from outside
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	$(BIN)/python -m pytest -q tests/docs/test_site.py --site build/site

build: $(VENV)/.installed-test ## the extension, rebuilt where its sources changed

check-tools:
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found: install Python 3.11 or newer, or name it with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $$($(PYTHON) --version) is too old: BamQuery needs Python 3.11 or newer (make PYTHON=/path/to/python3)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "error: $(PYTHON) cannot make virtual environments: install its venv package (Debian: apt install python3-venv)"; exit 1; }
	@test -f "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" || { echo "error: Python.h not found: install Python's headers (Debian: apt install python3-dev)"; exit 1; }
	@command -v $(CXX) >/dev/null || { echo "error: $(CXX) not found: install a C++20 compiler (Debian: apt install g++), or name it with make CXX=..."; exit 1; }

$(BIN)/python: | check-tools
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-test: $(NATIVE) | $(BIN)/python
	CXX=$(CXX) $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint,bench]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(VENV)/stubs $(STUBS)
	@touch $@

# By their names: with `-e '.[docs]'` pip would build the extension once more, five minutes of processor time.
DOCS := import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'], sep='\n')
$(VENV)/.installed-docs: $(VENV)/.installed-test
	$(BIN)/python -c "$(DOCS)" > $(VENV)/docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(VENV)/docs.txt
	@touch $@

$(VENV)/.installed-demo: $(NATIVE) | $(BIN)/python
	CXX=$(CXX) $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) build demo
