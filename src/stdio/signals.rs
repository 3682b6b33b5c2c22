//! The signals that end a process, as readable sources of a pump.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::vec::Vec;

use mio::event::{Event, Source};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::{pipe, unregister};

use super::ignored::{ignored, is_ignored};

/// Receives SIGINT, SIGTERM and, unless the process was started to ignore it, SIGHUP while it lives. Afterwards the
/// process ignores them, since what they did before cannot be brought back.
#[derive(Debug)]
pub(super) struct Signals(Vec<Signal>);

#[derive(Debug)]
struct Signal {
    number: i32,
    token: Token,
    id: SigId,
    /// Becomes readable.
    caught: UnixStream,
}

impl Signals {
    /// Registers one source a signal, under tokens from `first` up.
    pub(super) fn register(registry: &Registry, first: Token) -> io::Result<Self> {
        let mut signals = Self(Vec::new());
        let ignored = ignored();
        let wanted = [SIGINT, SIGTERM, SIGHUP];
        let wanted = wanted.into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(ignored, SIGHUP));
        for (number, offset) in wanted.zip(0..) {
            let (caught, raised) = UnixStream::pair()?;
            caught.set_nonblocking(true)?;
            let token = Token(first.0 + offset);
            SourceFd(&caught.as_raw_fd()).register(registry, token, Interest::READABLE)?;
            signals.0.push(Signal { number, token, id: pipe::register(number, raised)?, caught });
        }
        Ok(signals)
    }

    /// The signal that has come, if the event tells of one.
    pub(super) fn caught(&self, event: &Event) -> Option<i32> {
        let signal = self.0.iter().find(|signal| signal.token == event.token())?;
        // Emptied, so that the next one is told too.
        let mut caught = false;
        while matches!((&signal.caught).read(&mut [0; 16]), Ok(1..)) {
            caught = true;
        }
        caught.then_some(signal.number)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for signal in &self.0 {
            unregister(signal.id);
        }
    }
}
