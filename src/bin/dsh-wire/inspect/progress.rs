//! How far a long input has been read: one line on stderr, where that is a terminal with nothing better on it.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::input::Input;
use super::text::{Bytes, Seconds};
use crate::terminal::Styles;

/// What is done sooner is not worth a word.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often the line changes.
const TICK: Duration = Duration::from_millis(100);

pub(crate) struct Progress {
    /// `None` where nobody is to see it.
    begun: Option<Instant>,
    shown: Option<Instant>,
}

impl Progress {
    /// Without `wanted` it is never seen.
    pub(crate) fn new(wanted: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { begun: (wanted && !dumb && io::stderr().is_terminal()).then(Instant::now), shown: None }
    }

    /// To be called often.
    pub(crate) fn tick(&mut self, input: &Input) {
        let Some(begun) = self.begun else { return };
        let (now, elapsed) = (Instant::now(), begun.elapsed());
        if elapsed < PATIENCE || self.shown.is_some_and(|shown| now.duration_since(shown) < TICK) {
            return;
        }
        let line = line(input.bytes(), input.size(), elapsed);
        let faint = Styles::of(&io::stderr()).faint();
        // If the terminal is gone, there is nobody to see it.
        let _ = io::stderr().write_all(format!("\r\x1b[K{faint}{line}{faint:#}").as_bytes());
        self.shown = Some(now);
    }

    /// Before anything else is written.
    pub(crate) fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(read: u64, size: Option<u64>, elapsed: Duration) -> String {
    let rate = read as f64 / elapsed.as_secs_f64();
    let speed = Bytes(rate as u64);
    match size.filter(|size| *size >= read && read > 0) {
        Some(size) => {
            let part = read as f64 / size as f64;
            let full = (part * 20.0) as usize;
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(20_usize.saturating_sub(full)));
            let left = Seconds(Duration::from_secs_f64((size - read) as f64 / rate));
            format!("{:>3.0} % {bar} {} of {}, {speed}/s, {left} left", part * 100.0, Bytes(read), Bytes(size))
        }
        None => format!("{} read, {speed}/s", Bytes(read)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told() {
        let second = Duration::from_secs(1);
        assert_eq!(
            line(250_000_000, Some(1_000_000_000), second),
            " 25 % █████░░░░░░░░░░░░░░░ 250 MB of 1.00 GB, 250 MB/s, 3.00 s left"
        );
        assert_eq!(line(1, Some(1), second), "100 % ████████████████████ 1 B of 1 B, 1 B/s, 0.00 µs left");
        assert_eq!(line(5000, None, second), "5.00 kB read, 5.00 kB/s");
        assert_eq!(line(5000, Some(10), second), "5.00 kB read, 5.00 kB/s");
    }
}
