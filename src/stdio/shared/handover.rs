//! [`Handover`]: who pumps, the thread or a call.

use std::time::Duration;

/// The longest time that nobody pumps, after a call: so long the next one can begin to lead.
const REST: Duration = Duration::from_millis(2);

/// Who pumps, and whether that wants waking.
///
/// A call that waits for its answer alone pumps for itself, so that the answer need not be handed from thread to thread:
/// it *leads*, and the thread *rests*. The thread is called back as soon as a call ends its lead while others wait, or
/// while there is anything else to do. Where calls follow each other closely it is left to rest in between, for
/// [`REST`] at most.
#[derive(Debug)]
pub(super) struct Handover {
    thread: Thread,
    /// A call waits for the descriptors. Only while the thread rests.
    led: bool,
    /// The last to look for something was a call, nobody else waited, and the thread has not rested since.
    alone: bool,
    /// There is something to do for who pumps beside what the descriptors tell.
    poked: bool,
    /// Who pumps waits for the descriptors.
    asleep: bool,
}

/// What the thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    Pumps,
    /// Until the time is up.
    RestsBriefly,
    /// Until it is called back.
    Rests,
}

impl Handover {
    /// The thread pumps.
    pub(super) fn new() -> Self {
        Self { thread: Thread::Pumps, led: false, alone: false, poked: false, asleep: false }
    }

    /// Tells who pumps that there is something to do.
    pub(super) fn poke(&mut self) {
        self.poked = true;
    }

    /// Begins a turn: what it was poked for will be seen to.
    pub(super) fn begin_turn(&mut self) {
        self.poked = false;
    }

    /// Begins a wait for the descriptors.
    pub(super) fn sleep(&mut self) {
        self.asleep = true;
    }

    pub(super) fn end_sleep(&mut self) {
        self.asleep = false;
    }

    /// Whether who pumps is to be woken: it has been poked, or there is other work.
    pub(super) fn wants_waking(&self, work: bool) -> bool {
        self.asleep && (self.poked || work)
    }

    /// Somebody looks for what it waits for: a call, while nobody else waits, or any other.
    pub(super) fn note_look(&mut self, is_lone_call: bool) {
        self.alone = is_lone_call && !self.led;
    }

    /// Whether a call that waits may take turns.
    pub(super) fn may_lead(&self) -> bool {
        self.thread != Thread::Pumps && !self.led
    }

    /// A call begins to wait for the descriptors.
    pub(super) fn lead(&mut self) {
        self.led = true;
        self.sleep();
    }

    pub(super) fn end_lead(&mut self) {
        self.led = false;
        self.end_sleep();
    }

    /// Whether there may be nobody to pump for but a call that can do so itself.
    pub(super) fn is_alone(&self) -> bool {
        self.alone
    }

    /// The thread rests, no longer than that.
    pub(super) fn rest(&mut self) -> Option<Duration> {
        self.alone = false;
        self.thread = if self.led { Thread::Rests } else { Thread::RestsBriefly };
        (!self.led).then_some(REST)
    }

    /// The thread has been called back, or its time is up: whether it rests on.
    pub(super) fn rests_on(&mut self) -> bool {
        let calls_go_on = self.led || std::mem::take(&mut self.alone);
        if self.thread != Thread::Pumps && calls_go_on {
            return true;
        }
        self.thread = Thread::Pumps;
        false
    }

    /// Whether nobody pumps although somebody should, there being work. It will be the thread then, and it is to be
    /// called back.
    pub(super) fn call_back(&mut self, work: bool) -> bool {
        let deserted = match self.thread {
            _ if self.led => false,
            Thread::Pumps => false,
            Thread::Rests => true,
            Thread::RestsBriefly => self.poked || work,
        };
        if deserted {
            self.thread = Thread::Pumps;
        }
        deserted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that has been left to rest, since a call was alone.
    fn at_rest() -> Handover {
        let mut handover = Handover::new();
        handover.note_look(true);
        assert!(handover.is_alone() && !handover.may_lead());
        assert_eq!(handover.rest(), Some(REST));
        handover
    }

    #[test]
    fn the_thread_rests_while_a_call_leads_and_is_called_back_at_its_end() {
        let mut handover = at_rest();
        assert!(handover.may_lead());
        handover.lead();
        assert!(!handover.may_lead(), "one at a time");
        assert!(handover.wants_waking(true) && !handover.call_back(true), "the work is for the call that leads");
        assert!(handover.rests_on());
        assert_eq!(handover.rest(), None);
        handover.end_lead();
        assert!(handover.call_back(false), "nobody pumps");
        assert!(!handover.rests_on() && !handover.may_lead());
    }

    #[test]
    fn a_short_rest_ends_with_its_time_or_with_work() {
        let mut handover = at_rest();
        assert!(!handover.call_back(false));
        handover.note_look(true);
        assert!(handover.rests_on(), "another call has been there meanwhile");
        assert_eq!(handover.rest(), Some(REST));
        assert!(!handover.rests_on(), "nobody has");
        for (poked, work) in [(true, false), (false, true)] {
            let mut handover = at_rest();
            if poked {
                handover.poke();
            }
            assert!(handover.call_back(work));
            handover.note_look(true);
            assert!(!handover.rests_on());
        }
    }
}
