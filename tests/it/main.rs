//! Tests of the library from outside, one module a layer.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[cfg(feature = "stdio")]
mod client;
#[allow(dead_code, reason = "shared; not every build of the tests uses all of it")]
mod recording;
mod wire;
