//! Tests of the library and the command from outside, one module a layer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[cfg(feature = "cli")]
mod command;
#[allow(dead_code, reason = "shared; not every build of the tests uses all of it")]
mod recording;
mod wire;
