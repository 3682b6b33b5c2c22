//! What dsh-wire is measured against, and how.

pub mod corpus;
pub mod decode;
pub mod encode;
pub mod lines;
pub mod measure;
pub mod round_trip;
pub mod serve;
pub mod typed;
