//! What must hold of the library, as ordinary functions from bytes: each reads its input and its choices from them and
//! panics where the property fails.
//!
//! They stand here once. `tests/it` includes this file and runs them on seeded random bytes and on the committed
//! corpora; each fuzz target in `fuzz/fuzz_targets` includes it too and hands in the fuzzer's bytes; the differential
//! test takes its generator from here. They use the public interface only, and judge by [`oracle`], which shares no
//! code with the library.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a property fails by panicking")]
#![allow(dead_code, reason = "each of those who include this uses a part of it")]

pub(crate) mod choices;
pub(crate) mod client;
pub(crate) mod exhaustive;
pub(crate) mod frame;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod odd;
pub(crate) mod oracle;
pub(crate) mod pair;
pub(crate) mod peer;
pub(crate) mod server;
pub(crate) mod teardown;

pub(crate) type Property = fn(&[u8]);

/// Each property under the name of its fuzz target and corpus.
pub(crate) const ALL: [(&str, Property); 7] = [
    ("json", json::check),
    ("frame", frame::check),
    ("lines", lines::check),
    ("peer", peer::check),
    ("pair", pair::check),
    ("server", server::check),
    ("client", client::check),
];
