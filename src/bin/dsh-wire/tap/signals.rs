//! Signals to us are signals to the runtime. It is in a process group of its own: so each comes to it once, and through us,
//! whether it was sent to us alone, to our group, or by a key of the terminal.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal};

use super::flow::Life;
use crate::ignored;

/// Those that programs send to each other.
const FORWARDED: [Signal; 6] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];

/// Where signals go.
#[derive(Clone)]
pub(super) struct Forwarding {
    target: Arc<Mutex<Target>>,
    life: Arc<Life>,
}

enum Target {
    /// There is no runtime yet: what has come.
    Coming(Vec<Signal>),
    /// A runtime whose process id is its own.
    There(Pid),
    /// It has ended. The first signal is for those who wait for the client, the next one for all of us.
    Gone,
}

/// From now on these signals do not end us. Those that were ignored stay so, in us and in the runtime, which takes this
/// from us when it is started.
pub(super) fn catch(life: Arc<Life>) -> io::Result<Forwarding> {
    let forwarding = Forwarding { target: Arc::new(Mutex::new(Target::Coming(Vec::new()))), life };
    let (mut caught, raised) = UnixStream::pair()?;
    let ignored = ignored::ignored();
    let is_ignored = |signal: Signal| ignored::is_ignored(ignored, signal.as_raw());
    // A log over the limit of a file's size is one that cannot be written, and not our end.
    if !is_ignored(Signal::XFSZ) {
        signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::default())?;
    }
    // Where it is ignored, the system does not keep how a child has ended.
    signal_hook::flag::register(Signal::CHILD.as_raw(), Arc::default())?;
    let mut flags = Vec::new();
    for signal in FORWARDED.into_iter().filter(|signal| !is_ignored(*signal)) {
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal.as_raw(), Arc::clone(&flag))?;
        signal_hook::low_level::pipe::register(signal.as_raw(), raised.try_clone()?)?;
        flags.push((signal, flag));
    }
    let target = forwarding.clone();
    thread::Builder::new().name("signals".into()).spawn(move || {
        while matches!(caught.read(&mut [0]), Ok(1)) {
            for (signal, flag) in &flags {
                if flag.swap(false, Ordering::AcqRel) {
                    target.take(*signal);
                }
            }
        }
    })?;
    Ok(forwarding)
}

impl Forwarding {
    /// The runtime has been started: it gets what has come so far, too.
    pub(super) fn to(&self, runtime: Pid) {
        let before = self.aim(Target::There(runtime));
        if let Target::Coming(signals) = before {
            signals.into_iter().for_each(|signal| self.take(signal));
        }
    }

    /// The runtime has ended. Once this has returned, nothing is sent to it any more.
    pub(super) fn stop(&self) {
        self.aim(Target::Gone);
    }

    fn aim(&self, target: Target) -> Target {
        std::mem::replace(&mut *self.target.lock().unwrap_or_else(PoisonError::into_inner), target)
    }

    fn take(&self, signal: Signal) {
        match &mut *self.target.lock().unwrap_or_else(PoisonError::into_inner) {
            Target::Coming(signals) => signals.push(signal),
            // It has just ended, or is another user's: nothing to be done.
            Target::There(pid) => {
                if !matches!(signal, Signal::USR1 | Signal::USR2) {
                    self.life.asked.store(true, Ordering::Release);
                }
                let _ = rustix::process::kill_process(*pid, signal);
            }
            Target::Gone => {
                if self.life.hurry.raise() {
                    let _ = signal_hook::low_level::emulate_default_handler(signal.as_raw());
                }
            }
        }
    }
}
