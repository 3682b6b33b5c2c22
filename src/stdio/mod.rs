//! The protocol on file descriptors: pipes, child processes, and both ends, blocking. The thread that calls moves the
//! bytes; only the agents behind [`serve()`] have threads of their own.
//!
//! [`Pump`] is the one loop that both ends share.

mod host;
mod lanes;
mod own;
mod pump;
mod serve;
mod signals;

pub use host::{Agent, AgentHost, PromptResponder, Sink, SinkError, WhenFull};
pub use own::OwnStdio;
pub use pump::{Moved, Pump, Waker};
pub use serve::{ServeOptions, Served, serve, serve_stdio};
