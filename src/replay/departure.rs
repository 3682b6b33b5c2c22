//! Where a client does something else than the one that was recorded.

use alloc::string::String;
use core::fmt;

/// A line of the client in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// In words.
    pub what: String,
    /// The number of its entry in the recording, from 1.
    pub line: u64,
}

/// What a client has done that the recorded one had not, or not then.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Departure {
    /// It sent what the recording does not have, or not once more. A request was refused.
    Unknown {
        /// In words.
        came: String,
        /// What the recording goes on with.
        next: Option<Place>,
    },
    /// It sent something before what comes first in the recording. It was answered as recorded.
    Early {
        /// What came.
        came: Place,
        /// What would have been next.
        next: Place,
    },
    /// It ended without having sent this.
    Missing(Place),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {} of the recording)", self.what, self.line)
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { came, next: Some(next) } => {
                write!(f, "the client sent {came}, which the recording does not have here; it goes on with {next}")
            }
            Self::Unknown { came, next: None } => write!(f, "the client sent {came} after the end of the recording"),
            Self::Early { came, next } => write!(f, "the client sent {came} before {next}"),
            Self::Missing(place) => write!(f, "the client has never sent {place}"),
        }
    }
}
