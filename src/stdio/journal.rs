//! What a client meets, for the `log` crate. Nothing of what frames carry is written, nor any environment.

use super::child::Exit;
use super::error::Cause;
use crate::client::{Event, RungReport};

const TARGET: &str = "dsh_wire";

/// Something came.
pub(super) fn event(event: &Event<'_>) {
    match event {
        Event::Dropped(line) => {
            log::warn!(target: TARGET, "line {} of {} bytes dropped: {}", line.number, line.len, line.why);
        }
        Event::Unmatched { id, .. } => log::debug!(target: TARGET, "a response that no call waits for, id {id:?}"),
        Event::Refused { method } => log::info!(target: TARGET, "a request of the runtime was refused: {method:?}"),
        _ => {}
    }
}

/// The process has ended.
pub(super) fn exited(exit: Exit) {
    log::info!(target: TARGET, "the runtime {exit}");
}

/// The connection was ended by us.
pub(super) fn failed(cause: &Cause) {
    match cause {
        Cause::ClosedHere => log::debug!(target: TARGET, "closed"),
        cause => log::error!(target: TARGET, "the connection has failed: {cause:?}"),
    }
}

/// A rung of the ladder is over.
pub(super) fn rung(report: &RungReport) {
    log::debug!(target: TARGET, "{report}");
}
