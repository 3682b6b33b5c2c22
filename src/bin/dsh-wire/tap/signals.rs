//! Signals to us are signals to the runtime. It is in a process group of its own: so each comes to it once, and through us,
//! whether it was sent to us alone, to our group, or by a key of the terminal.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal};

/// Those that programs send to each other.
const FORWARDED: [Signal; 6] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];

/// The runtime, while its process id is its own.
pub(super) struct Forwarding(Arc<Mutex<Option<Pid>>>);

/// From now on these signals do not end us; the runtime gets them.
pub(super) fn forward(runtime: Pid) -> io::Result<Forwarding> {
    let runtime = Arc::new(Mutex::new(Some(runtime)));
    let target = Arc::clone(&runtime);
    let (mut caught, raised) = UnixStream::pair()?;
    // A log over the limit of a file's size is one that cannot be written, and not our end.
    signal_hook::flag::register(Signal::XFSZ.as_raw(), Arc::default())?;
    let mut flags = Vec::new();
    for signal in FORWARDED {
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal.as_raw(), Arc::clone(&flag))?;
        signal_hook::low_level::pipe::register(signal.as_raw(), raised.try_clone()?)?;
        flags.push((signal, flag));
    }
    thread::Builder::new().name("signals".into()).spawn(move || {
        while matches!(caught.read(&mut [0]), Ok(1)) {
            for (signal, flag) in &flags {
                if flag.swap(false, Ordering::AcqRel) {
                    send(&target, *signal);
                }
            }
        }
    })?;
    Ok(Forwarding(runtime))
}

impl Forwarding {
    /// Once it has returned, nothing is sent any more.
    pub(super) fn stop(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn send(target: &Mutex<Option<Pid>>, signal: Signal) {
    if let Some(pid) = *target.lock().unwrap_or_else(PoisonError::into_inner) {
        // It has just ended, or is another user's: nothing to be done.
        let _ = rustix::process::kill_process(pid, signal);
    }
}
