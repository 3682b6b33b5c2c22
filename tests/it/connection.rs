//! A client of `serve` on pipes in this process, line by line, every wait with a bound.

use std::io::{BufRead, BufReader, PipeWriter, Write, pipe};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::time::Duration;

use dsh_wire::stdio::{AgentHost, ServeOptions, Served, serve};

/// Nothing that these tests wait for takes so long.
const BOUND: Duration = Duration::from_secs(20);

pub(crate) struct Connection {
    pub(crate) requests: Option<PipeWriter>,
    /// One line is read ahead; the next one stays in the pipe until it is asked for.
    answers: Receiver<String>,
    served: Receiver<Served>,
}

impl Connection {
    /// Initialized.
    pub(crate) fn new(host: impl AgentHost, options: ServeOptions) -> Self {
        let (input, requests) = pipe().unwrap();
        let (answers, output) = pipe().unwrap();
        let (end, served) = channel();
        std::thread::spawn(move || end.send(serve(host, input.into(), output.into(), options).unwrap()));
        let (heard, lines) = sync_channel(0);
        std::thread::spawn(move || {
            let mut lines = BufReader::new(answers).lines().map_while(Result::ok);
            lines.try_for_each(|line| heard.send(line))
        });
        let mut connection = Self { requests: Some(requests), answers: lines, served };
        connection.says(r#"{"id":0,"method":"initialize","params":{"cwd":"/","provider":"p","model":"m"}}"#);
        assert!(connection.hears().contains("serverInfo"));
        connection
    }

    pub(crate) fn says(&mut self, line: &str) {
        writeln!(self.requests.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line; `None` after the last one.
    #[track_caller]
    pub(crate) fn hears_any(&mut self) -> Option<String> {
        match self.answers.recv_timeout(BOUND) {
            Err(RecvTimeoutError::Timeout) => panic!("no line in time"),
            line => line.ok(),
        }
    }

    #[track_caller]
    pub(crate) fn hears(&mut self) -> String {
        self.hears_any().expect("one more line")
    }

    /// All lines up to the next one with this in it.
    #[track_caller]
    pub(crate) fn hears_up_to(&mut self, part: &str) -> Vec<String> {
        up_to(part, || self.hears())
    }

    /// Why serving has ended.
    #[track_caller]
    pub(crate) fn served(&mut self) -> Served {
        self.served.recv_timeout(BOUND).expect("an end in time")
    }

    /// Ends the input, and reads no more than has been read.
    #[track_caller]
    pub(crate) fn ends_unread(mut self) -> Served {
        self.requests = None;
        self.served()
    }

    /// Ends the input; what came after, and why it ended.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (Vec<String>, Served) {
        self.requests = None;
        let lines = std::iter::from_fn(|| self.hears_any()).collect();
        (lines, self.served())
    }
}

/// All lines up to the next one with this in it.
#[track_caller]
pub(crate) fn up_to(part: &str, hear: impl FnMut() -> String) -> Vec<String> {
    let mut lines = Vec::new();
    for line in std::iter::repeat_with(hear) {
        lines.push(line);
        if lines.last().is_some_and(|line| line.contains(part)) {
            break;
        }
    }
    lines
}
