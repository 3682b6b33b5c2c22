//! Ctrl-C, SIGTERM and SIGHUP: the first asks for an orderly end, the next for a fast one, and a third one ends the
//! process, whatever it is stuck in.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dsh_wire::peer::AbortToken;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;

use crate::failure::{Exit, Failure};
use crate::ignored::{ignored, is_ignored};

/// After a third signal: what the second one asked for, the end of the runtime, may still be under way.
const LAST: Duration = Duration::from_millis(500);

/// The two tokens that signals set, one after the other.
#[derive(Clone)]
pub(crate) struct Interrupts {
    /// Set by the first signal: what is being waited for is given up.
    pub(crate) stop: AbortToken,
    /// Set by the next one: the teardown is cut short.
    pub(crate) hurry: AbortToken,
    /// The signal that came last, or 0.
    signal: Arc<AtomicUsize>,
}

impl Interrupts {
    /// Not caught yet.
    pub(crate) fn new() -> Self {
        let (stop, hurry) = (AbortToken::new("interrupted"), AbortToken::new("interrupted again"));
        Self { stop, hurry, signal: Arc::default() }
    }

    /// From now on the signals do not end the process. SIGHUP stays ignored where it was (`nohup`).
    pub(crate) fn catch(&self) -> Result<(), Failure> {
        self.listen()
            .map_err(|error| Failure::Failed(Exit::FAILED, format!("cannot listen for signals: {error}").into()))
    }

    fn listen(&self) -> io::Result<()> {
        let (mut caught, raised) = UnixStream::pair()?;
        for (number, value) in [(SIGINT, 2), (SIGTERM, 15), (SIGHUP, 1)] {
            if number == SIGHUP && is_ignored(ignored(), number) {
                continue;
            }
            signal_hook::flag::register_usize(number, Arc::clone(&self.signal), value)?;
            signal_hook::low_level::pipe::register(number, raised.try_clone()?)?;
        }
        let (tokens, came) = ([self.stop.clone(), self.hurry.clone()], Arc::clone(&self.signal));
        thread::Builder::new().name("signals".into()).spawn(move || {
            while matches!(caught.read(&mut [0]), Ok(1)) {
                match tokens.iter().find(|token| !token.is_aborted()) {
                    Some(token) => token.abort(),
                    None => {
                        thread::sleep(LAST);
                        let last = i32::try_from(came.load(Ordering::Acquire)).unwrap_or(SIGTERM);
                        let _ = emulate_default_handler(last);
                    }
                }
            }
        })?;
        Ok(())
    }

    /// The signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<u8> {
        u8::try_from(self.signal.load(Ordering::Acquire)).ok().filter(|number| *number > 0)
    }
}
