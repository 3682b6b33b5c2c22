//! Ids of messages and sub-agents: UUIDs, random or counted.

use std::collections::hash_map::RandomState;
use std::format;
use std::hash::BuildHasher;
use std::string::String;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::json::JsonString;

/// The ids of one session.
#[derive(Debug)]
pub(super) enum Ids {
    Random,
    /// They depend on the session's id and on what came before in it, whatever other threads do: what comes into the
    /// inbox is counted apart from what turns make.
    Counted {
        session: u32,
        inbox: AtomicU64,
        turns: AtomicU64,
    },
}

impl Ids {
    pub(super) fn new(session: &JsonString, counted: bool) -> Self {
        if !counted {
            return Self::Random;
        }
        // FNV-1a, which stays the same from version to version.
        let hash = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let session = session.as_json_str().get().bytes().fold(0x811c_9dc5, hash);
        Self::Counted { session, inbox: AtomicU64::new(0), turns: AtomicU64::new(0) }
    }

    /// For a message that comes into the inbox.
    pub(super) fn of_inbox(&self) -> String {
        match self {
            Self::Random => random(),
            Self::Counted { session, inbox, .. } => counted(*session, 0, inbox),
        }
    }

    /// For what a turn makes.
    pub(super) fn of_turn(&self) -> String {
        match self {
            Self::Random => random(),
            Self::Counted { session, turns, .. } => counted(*session, 1, turns),
        }
    }
}

/// In the form of a version 8 UUID (RFC 9562), of which the content is ours.
fn counted(session: u32, kind: u16, next: &AtomicU64) -> String {
    let next = next.fetch_add(1, Ordering::Relaxed) + 1;
    format!("{session:08x}-{kind:04x}-8000-8000-{:012x}", next & 0xffff_ffff_ffff)
}

fn random() -> String {
    static HASHERS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let [high, low] = HASHERS.each_ref().map(|hasher| hasher.hash_one(next));
    // Version 4 and its variant (RFC 9562).
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | 0b10 << 62;
    let (time_low, time_mid, time_high) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
    format!("{time_low:08x}-{time_mid:04x}-{time_high:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_ones_are_version_4() {
        let (one, two) = (random(), random());
        assert_ne!(one, two);
        assert_eq!(one.len(), 36);
        assert_eq!((&one[14..15], &one[8..9]), ("4", "-"));
        assert!("89ab".contains(&one[19..20]));
    }

    #[test]
    fn counted_ones_depend_on_the_session_only() {
        let ids = |session: &str| Ids::new(&session.into(), true);
        let (one, again, other) = (ids("a"), ids("a"), ids("b"));
        let first = one.of_inbox();
        assert_eq!(first.len(), 36);
        assert_ne!(first, one.of_inbox());
        // Whatever turns made meanwhile.
        assert_ne!(again.of_turn(), first);
        assert_eq!(again.of_inbox(), first);
        assert_ne!(other.of_inbox(), first);
    }
}
