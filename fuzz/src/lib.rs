//! What the fuzz targets run. The smoke test of `nuncio-core` runs the same functions over
//! mutated golden files, on stable Rust, with every `cargo test`.

#[path = "../../crates/nuncio-core/tests/wire/exercise.rs"]
pub mod exercise;
