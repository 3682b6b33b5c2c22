//! Calling a predicate of the user's, where a panic cannot be caught.

use super::subscription::Predicate;
use crate::wire::Notification;

/// What the predicate says.
pub(super) fn ask(predicate: &mut Predicate, notification: &Notification<'_>) -> Option<bool> {
    Some(predicate(notification))
}
