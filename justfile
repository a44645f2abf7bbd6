# Short names for the commands of every day; `just` alone lists them.

# Arguments reach the commands as they were quoted.
set positional-arguments

_default:
    @just --list

# Everything a change must pass: format, lints, documentation, tests.
check:
    bash .ci/run

# The tests on SQLite only; takes what `cargo test` takes.
test *args:
    env -u CALLBOARD_TEST_POSTGRES_URL cargo test --workspace --locked "$@"

# The tests on SQLite and on two private PostgreSQL servers that live as long as the run.
test-pg *args:
    bash tests/run "$@"

# Format the code.
fmt:
    cargo fmt --all

# A workspace, a webhook receiver and a sandbox campaign, with the events printed as they land.
demo *args:
    cargo run --locked -- demo "$@"

# The load runs, with a release build.
load *args:
    bash tests/load/run "$@"
