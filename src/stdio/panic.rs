//! What a panic said.

use std::any::Any;
use std::string::String;

/// The text of a panic that was caught, if it had one.
pub(super) fn text(panic: &(dyn Any + Send)) -> Option<&str> {
    panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied())
}
