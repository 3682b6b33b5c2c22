//! Tests through the public interface. Run with `cargo test --features cli` to have those of the command too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod bounds;
mod frame;
mod json;
mod peer;
mod proof;
#[path = "../properties/mod.rs"]
mod properties;
