//! The crate on real pipes and processes.
