//! What a client meets, where nobody writes it down.

use super::child::Exit;
use super::error::Cause;
use crate::client::{Event, RungReport};

pub(super) fn event(_: &Event<'_>) {}

pub(super) fn exited(_: Exit) {}

pub(super) fn failed(_: &Cause) {}

pub(super) fn rung(_: &RungReport) {}
