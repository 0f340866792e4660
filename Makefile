# make demo: measure small reads against large ones on a scratch file. The tests have three tiers (CONTRIBUTING.md):
# make test, what CI runs at every push; make soak, all tests with all their examples, for a night; make bench, how fast
# and how sure iodelta is, before a release.
.PHONY: demo test soak bench mutants test-changed check native docs man packages kernel-bisect ssh-reboot clean

# Hundreds of processes start iodelta and the tests: Python keeps what it compiled, and pytest what it rewrote.
unexport PYTHONDONTWRITEBYTECODE

# Tests marked root or fio, but not beside, are one group: no two of them run at a time.
PYTEST = .venv/bin/pytest -n auto --dist loadgroup --max-worker-restart=0

demo:
	@scripts/setup demo
	@scripts/demo

test:
	@scripts/setup test
	@.venv/bin/python -m compileall -q src
	@$(MAKE) --no-print-directory -j2 --output-sync check native docs
	$(PYTEST) --tier push --all-run

soak:
	@scripts/setup soak
	$(PYTEST) --tier night --all-run --durations 50

bench:
	@scripts/setup test
	.venv/bin/python -m benchmarks.verdicts
	.venv/bin/python -m benchmarks.history
	.venv/bin/python -m benchmarks.reading

# Small mistakes in the statistics, the verdict, the guard, the undo log and the seal: how many do the tests notice?
mutants:
	@scripts/setup test
	.venv/bin/python -m benchmarks.mutants

# The tests of what you changed since main, and of all that is built on it.
test-changed:
	@.venv/bin/pytest $$(.venv/bin/python scripts/changed-tests main)

check:
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/pytest --collect-only -qq >/dev/null

native:
	@MAKEFLAGS= scripts/native check
	@MAKEFLAGS= scripts/native test

docs:
	@scripts/setup docs
	.venv/bin/python -m sphinx -q -W --keep-going -b html docs docs/_site
	@echo docs/_site/index.html

# Manual pages of all commands, made from the commands; see docs/shell-completion.md.
man:
	@scripts/setup demo
	@.venv/bin/python scripts/man man/man1
	@echo "man -M $(CURDIR)/man iodelta"

# Wheels, sdists, a package of Debian and a container image, into dist/; see docs/install.md.
packages:
	@scripts/setup packages
	@scripts/package all

# Real kernels, built and booted: an hour the first time, goes on where it was; see benchmarks/kernel_bisect.
kernel-bisect:
	@scripts/setup kernels
	.venv/bin/python -m benchmarks.kernel_bisect

# A host over SSH that really reboots, by kexec: some ten minutes; see benchmarks/ssh_reboot.
ssh-reboot:
	@scripts/setup reboots
	.venv/bin/python -m benchmarks.ssh_reboot

clean:
	rm -rf native/target man docs/_site docs/reference .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
