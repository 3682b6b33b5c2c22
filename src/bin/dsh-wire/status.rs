//! The status line: what is being waited for, on stderr, where that is a terminal, and only until there is something
//! better to see. It waits for nobody: where the terminal has no room, it is not drawn.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::output::Output;
use crate::terminal::{Styles, shortened};

/// How often it changes.
const TICK: Duration = Duration::from_millis(100);

/// A wait that is shorter than this is not worth a word.
const PATIENCE: Duration = Duration::from_millis(300);

const WHEEL: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// A line that a thread keeps alive. Without a terminal there is neither.
pub(crate) struct StatusLine {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    stderr: Output,
    text: String,
    /// When the wait for this began.
    since: Instant,
    /// Whether the terminal shows the line now. Whoever writes elsewhere on it clears the line first.
    shown: bool,
    /// The cursor stands behind unfinished text, so there is no line to use.
    hidden: bool,
    over: bool,
}

impl StatusLine {
    /// Without `wanted` it is only what [`out_of_the_way`](Self::out_of_the_way) makes of it.
    pub(crate) fn new(text: &str, wanted: bool, stderr: Output) -> Self {
        let state =
            State { stderr, text: text.into(), since: Instant::now(), shown: false, hidden: false, over: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let wanted = wanted && io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let thread = wanted.then(|| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("status line".into()).spawn(move || shared.keep_alive()).ok()
        });
        Self { shared, thread: thread.flatten() }
    }

    /// Says what is waited for from now on.
    pub(crate) fn set(&self, text: &str) {
        let mut state = self.shared.lock();
        if state.text != text {
            state.text = text.into();
            state.since = Instant::now();
        }
    }

    /// Runs `write` with the line out of the way. It returns whether the cursor stands at the start of a line
    /// afterwards.
    pub(crate) fn out_of_the_way(&self, write: impl FnOnce() -> io::Result<bool>) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.clear();
        state.hidden = !write()?;
        Ok(())
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It cannot panic; if it has all the same, there is no line any more, which is what is wanted.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A state is whole at any moment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_alive(&self) {
        let styles = Styles::of(&io::stderr());
        let mut state = self.lock();
        while !state.over {
            state.draw(styles);
            state = self.changed.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.clear();
    }
}

impl State {
    fn draw(&mut self, styles: Styles) {
        let waited = self.since.elapsed();
        if self.hidden || waited < PATIENCE {
            return;
        }
        let wheel = WHEEL.iter().cycle().nth((waited.as_millis() / TICK.as_millis()) as usize % WHEEL.len());
        // A line that wraps could not be cleared as one.
        let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let width = if columns == 0 { 60 } else { columns.saturating_sub(12).min(60) };
        let (faint, text, seconds) = (styles.faint(), shortened(&self.text, width), waited.as_secs());
        let line = format!("\r\x1b[K{faint}{} {text} {seconds} s{faint:#}", wheel.unwrap_or(&' '));
        self.shown |= self.stderr.write_without_waiting(line.as_bytes());
    }

    fn clear(&mut self) {
        if self.shown {
            self.stderr.write_without_waiting(b"\r\x1b[K");
            self.shown = false;
        }
    }
}
