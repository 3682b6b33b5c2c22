//! Tests through the public interface. Run with `cargo test --features cli` to have those of the command too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[cfg(feature = "cli")]
mod command;
mod frame;
mod json;
mod peer;
#[allow(dead_code, reason = "shared; not every module uses all of it")]
mod recording;
mod wire;
