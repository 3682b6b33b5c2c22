//! The logs of sessions, kept as JSON lines.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;

use dsh_wire::json::{Json, JsonString};
use dsh_wire::server::{NewEvent, Refusal, Stamp};
use dsh_wire::stdio::Sink;
use dsh_wire::stdio::turns::Keep;

use super::event;
use super::value::object;
use crate::runtime::MAX_SAFE_INTEGER;

/// Longest file name that an id is written out in.
const LONGEST_NAME: usize = 120;

/// Where sessions are kept: one file each.
pub(super) struct Store {
    folder: PathBuf,
}

/// The file of one session.
struct Log {
    session: JsonString,
    /// `None` once it could not be written.
    file: Option<File>,
}

/// What has to be known of a session that goes on.
#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) turn: u64,
    pub(super) cwd: Option<JsonString>,
    /// The directory that the last context note named.
    pub(super) context: Option<JsonString>,
    pub(super) has_system: bool,
    pub(super) has_header: bool,
    pub(super) has_title: bool,
    /// The last turn has no end.
    in_turn: bool,
    /// The last event.
    stamp: Option<Stamp>,
}

impl Store {
    /// Keeps the sessions under a home folder, apart from those of other runtimes.
    pub(super) fn new(home: PathBuf) -> Self {
        Self { folder: home.join("dsh-wire").join("sessions") }
    }

    pub(super) fn create(&self, sink: &Sink) -> Result<Keep, Refusal> {
        std::fs::create_dir_all(&self.folder).map_err(|error| cannot("store", sink.session(), &error))?;
        match File::options().append(true).create_new(true).open(self.path(sink.session())) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(Refusal::session_exists(sink.session())),
            Err(error) => Err(cannot("store", sink.session(), &error)),
            Ok(file) => {
                lock(&file, sink.session())?;
                Ok(Log::new(sink, file).into_keep())
            }
        }
    }

    pub(super) fn resume(&self, sink: &Sink) -> Result<(Past, Keep), Refusal> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => Refusal::session_not_found(sink.session()),
            _ => cannot("read", sink.session(), &error),
        };
        let path = self.path(sink.session());
        let mut file = File::options().read(true).append(true).open(&path).map_err(failed)?;
        lock(&file, sink.session())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let past = Past::read(&String::from_utf8_lossy(&bytes)).map_err(|what| {
            let (session, path) = (sink.session(), path.display());
            Refusal::new(format!("cannot resume session \"{session}\": {path} is corrupt: {what}"))
        })?;
        let mut log = Log::new(sink, file);
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            // The end of a line that was cut off; it must not spoil the next one.
            log.write("");
        }
        log.continue_from(&past, sink);
        Ok((past, log.into_keep()))
    }

    /// Letters and digits as they are, all else as `~` and two hex digits; a long name is cut and told apart by a hash.
    fn path(&self, session: &JsonString) -> PathBuf {
        let written = session.as_json_str().get();
        let mut name = String::from("s");
        for byte in written.bytes().skip(1).take(written.len() - 2) {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
                _ => name.push_str(&format!("~{byte:02x}")),
            }
        }
        if name.len() > LONGEST_NAME {
            // FNV-1a, which stays the same from version to version.
            let hash = written
                .bytes()
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            name.truncate(LONGEST_NAME);
            name.push_str(&format!("~~{hash:016x}"));
        }
        self.folder.join(name + ".jsonl")
    }
}

fn cannot(attempt: &str, session: &JsonString, error: &io::Error) -> Refusal {
    Refusal::new(format!("cannot {attempt} session \"{session}\": {error}"))
}

fn lock(file: &File, session: &JsonString) -> Result<(), Refusal> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(Refusal::new(format!("session \"{session}\" is already owned by an active write handle")))
        }
        Err(TryLockError::Error(error)) => Err(cannot("lock", session, &error)),
    }
}

impl Log {
    fn new(sink: &Sink, file: File) -> Self {
        Self { session: sink.session().clone(), file: Some(file) }
    }

    fn into_keep(mut self) -> Keep {
        Box::new(move |event| self.write(event))
    }

    fn write(&mut self, line: &str) {
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(format!("{line}\n").as_bytes())
        {
            let _ = writeln!(io::stderr(), "dsh-wire: cannot store session \"{}\": {error}", self.session);
            self.file = None;
        }
    }

    /// Ends in the log what the last process left open, and says where this one begins. None of it is sent.
    fn continue_from(&mut self, past: &Past, sink: &Sink) {
        let Some(mut stamp) = past.stamp else { return };
        let interrupted = object! { "turn" => past.turn, "reason" => object! { "kind" => "interrupted" } };
        for (kind, data) in [("turn/end", interrupted), ("session/end-seed", object! {})] {
            if kind == "session/end-seed" || past.in_turn {
                stamp.seq += 1;
                if let Ok(line) = serde_json::to_string(&NewEvent::new(kind, &data).stamped(stamp)) {
                    self.write(&line);
                }
            }
        }
        sink.number_from(stamp.seq + 1);
    }
}

impl Past {
    /// What a log says, or which line is wrong. Lines that a crash has cut are passed over.
    fn read(log: &str) -> Result<Self, String> {
        let mut past = Self::default();
        for (line, number) in log.lines().zip(1..) {
            if let Ok(event) = Json::new(line) {
                past.note(event).map_err(|what| format!("line {number}: {what}"))?;
            }
        }
        Ok(past)
    }

    fn note(&mut self, event: Json<'_>) -> Result<(), String> {
        let (Some(kind), Some(data)) = (event.member("type").and_then(Json::as_str), event.member("data")) else {
            return Err("no event".to_owned());
        };
        self.stamp = Some(Stamp { seq: count(event, "seq")?, time: count(event, "time")? });
        match &*kind.to_string_lossy() {
            "turn/start" => (self.turn, self.in_turn) = (count(data, "turn")?, true),
            "turn/end" => self.in_turn = false,
            "working-directory/change" => self.cwd = data.member("cwd").and_then(Json::as_str).map(|cwd| cwd.to_buf()),
            "system/message" => self.has_system = true,
            "request/header" => self.has_header = true,
            "session/title" => self.has_title = true,
            "user/message" => self.context = event::context_of(data).or_else(|| self.context.take()),
            _ => {}
        }
        Ok(())
    }
}

/// A number that is counted on from. What JavaScript cannot count with no runtime has written.
fn count(of: Json<'_>, name: &str) -> Result<u64, String> {
    let number = of.member(name).and_then(Json::as_u64).filter(|number| *number <= MAX_SAFE_INTEGER);
    number.ok_or_else(|| format!("\"{name}\" is not a whole number from 0 to {MAX_SAFE_INTEGER}"))
}
