//! The recording, as a file that may be slow or full.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dsh_wire::recording::{Direction, Entry, What, redact};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::spool::{Lines, Part, Piece, Spool};
use super::tell;

/// Entries are written together, up to about so many bytes.
const BATCH: usize = 64 << 10;

const DIRECTIONS: [Direction; 3] = [Direction::ClientToServer, Direction::ServerToClient, Direction::Stderr];

/// A file that takes entries.
pub(super) struct Log {
    path: PathBuf,
    file: File,
    redact: bool,
    /// A file that can be cut back to its last whole entry, and how long it is up to there.
    cut: Option<u64>,
    /// Without that: the end of what was written is no line end.
    torn: bool,
    /// What waits to be written.
    batch: Batch,
    /// What could not be written, by direction; told by the next write that works.
    lost: [u64; 3],
    /// A write has failed and nobody needs to be told again.
    told: bool,
}

/// Encoded entries, and how many bytes of each direction they stand for.
#[derive(Default)]
struct Batch {
    text: String,
    covers: [u64; 3],
    /// The time of the last.
    at: Duration,
}

impl Log {
    pub(super) fn create(path: &Path, redact: bool) -> io::Result<Self> {
        let mut options = File::options();
        // What is said is for nobody else's eyes.
        options.write(true).create(true).truncate(false).mode(0o600);
        // To open a named pipe for writing only would wait for a reader.
        options.read(path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()));
        let file = open(options, path)?;
        let cut = file.metadata()?.is_file().then_some(0);
        if cut.is_some() && matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(io::Error::other("another tap is writing it"));
        }
        let path = path.to_owned();
        Ok(Self { path, file, redact, cut, torn: false, batch: Batch::default(), lost: [0; 3], told: false })
    }

    /// Writes what comes, to the end. Only now, with a runtime to listen to, what the file held before goes.
    pub(super) fn run(mut self, spool: &Spool) {
        if self.cut.is_some() {
            let _ = self.file.set_len(0);
        }
        let mut streams: [Lines; 3] = Default::default();
        let mut last = Duration::ZERO;
        while let Some(pieces) = spool.take() {
            for Piece { at, direction, what } in pieces {
                last = at;
                if let Some(lines) = streams.get_mut(direction as usize) {
                    lines.push(&what, |what| self.add(at, direction, what));
                }
                spool.advance();
            }
            self.write();
        }
        for (lines, direction) in streams.iter_mut().zip(DIRECTIONS) {
            lines.push(&Part::End, |what| self.add(last, direction, what));
        }
        self.write();
        if self.lost != [0; 3] {
            let [client, runtime, stderr] = self.lost;
            let path = self.path.display();
            tell(format_args!(
                "the log '{path}' misses {client} bytes of the client, {runtime} of the runtime, {stderr} of its stderr"
            ));
        }
    }

    fn add(&mut self, at: Duration, direction: Direction, mut what: What) {
        let covers = match &mut what {
            What::Line { bytes, eol } => {
                if self.redact {
                    redact(direction, bytes);
                }
                bytes.len() as u64 + u64::from(*eol)
            }
            What::Lost(bytes) => *bytes,
        };
        Entry { at, direction, what }.encode(&mut self.batch.text);
        self.batch.at = at;
        if let Some(count) = self.batch.covers.get_mut(direction as usize) {
            *count += covers;
        }
        if self.batch.text.len() >= BATCH {
            self.write();
        }
    }

    /// Writes the batch, or notes that it is lost.
    fn write(&mut self) {
        let Batch { text, covers, at } = std::mem::take(&mut self.batch);
        self.batch.at = at;
        if text.is_empty() && self.lost == [0; 3] {
            return;
        }
        let mut whole = String::new();
        if self.torn {
            whole.push('\n');
        }
        for (lost, direction) in self.lost.iter().zip(DIRECTIONS).filter(|(lost, _)| **lost > 0) {
            Entry { at, direction, what: What::Lost(*lost) }.encode(&mut whole);
        }
        whole.push_str(&text);
        match self.write_whole(whole.as_bytes()) {
            Ok(()) => self.lost = [0; 3],
            Err(error) => {
                for (lost, more) in self.lost.iter_mut().zip(covers) {
                    *lost += more;
                }
                if !std::mem::replace(&mut self.told, true) {
                    let path = self.path.display();
                    tell(format_args!("cannot write the log '{path}': {error}; the conversation goes on without it"));
                }
            }
        }
    }

    /// All of it or, as far as the file allows, nothing.
    fn write_whole(&mut self, text: &[u8]) -> io::Result<()> {
        let mut left = text;
        while !left.is_empty() {
            let error = match self.file.write(left) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(len) => {
                    left = left.get(len..).unwrap_or_default();
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            if let Some(end) = self.cut {
                // Where even that fails, the reader will find a line that is no entry.
                let cut = self.file.set_len(end).and_then(|()| self.file.seek(SeekFrom::Start(end)));
                self.torn = cut.is_err();
            } else {
                self.torn |= left.len() < text.len();
            }
            return Err(error);
        }
        self.torn = false;
        self.cut = self.cut.map(|end| end + text.len() as u64);
        Ok(())
    }
}

/// A link of another user's is not followed: it may have been put there to lead us anywhere.
fn open(mut options: OpenOptions, path: &Path) -> io::Result<File> {
    match options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path) {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            let owner = path.symlink_metadata()?.uid();
            if owner != 0 && owner != rustix::process::geteuid().as_raw() {
                return Err(io::Error::other("it is a link that belongs to another user"));
            }
            options.custom_flags(0).open(path)
        }
        outcome => outcome,
    }
}
