# Shortcuts. The scripts are what counts: they need nothing but a shell.

# What CI runs.
ci:
    scripts/test

# The tests of one crate, such as `just test nuncio-core`.
test crate="--workspace":
    cargo test {{ if crate == "--workspace" { crate } else { "--package " + crate } }}

# Format and lint.
lint:
    cargo fmt --all
    cargo clippy --workspace --all-targets -- -D warnings

# The documentation, in a browser.
doc:
    cargo doc --workspace --no-deps --open

# Every fuzz target for so many seconds each; takes a nightly toolchain and cargo-fuzz.
fuzz seconds="60":
    for target in $(cargo +nightly fuzz list); do cargo +nightly fuzz run "$target" -- -max_total_time={{ seconds }}; done
