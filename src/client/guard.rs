//! Calling a predicate of the user's so that its panic is its own.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::subscription::Predicate;
use crate::wire::Notification;

/// What the predicate says; `None` where it panics.
pub(super) fn ask(predicate: &mut Predicate, notification: &Notification<'_>) -> Option<bool> {
    // A predicate that has panicked is not called again, so nobody sees the state it left.
    catch_unwind(AssertUnwindSafe(|| predicate(notification))).ok()
}
