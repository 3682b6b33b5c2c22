//! [`Refusal`]: what a client is told where a request is not met.

use alloc::string::String;
use core::fmt;

use crate::json::JsonString;

/// Why a request is not met, for the client to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub(super) message: String,
}

impl Refusal {
    /// With this message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// A session that is to be created is there already: `session "ID" already exists`.
    #[must_use]
    pub fn session_exists(session: &JsonString) -> Self {
        Self::new(alloc::format!("session \"{session}\" already exists"))
    }

    /// A session that is to be resumed is not stored: `session "ID" not found`.
    #[must_use]
    pub fn session_not_found(session: &JsonString) -> Self {
        Self::new(alloc::format!("session \"{session}\" not found"))
    }

    /// A provider that the host does not have: `no adapter registered for provider "NAME"`.
    #[must_use]
    pub fn unknown_provider(provider: &JsonString) -> Self {
        Self::new(alloc::format!("no adapter registered for provider \"{provider}\""))
    }

    /// A directory that is not there: `working-directory: directory does not exist: "PATH"`.
    #[must_use]
    pub fn no_directory(path: &JsonString) -> Self {
        Self::new(alloc::format!("working-directory: directory does not exist: \"{path}\""))
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for Refusal {}

impl From<&str> for Refusal {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}
