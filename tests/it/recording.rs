//! The recordings of the official runtime, from `tests/fixtures` (its README says how they are written).

use std::path::{Path, PathBuf};

pub(crate) use dsh_wire::recording::Direction;
use dsh_wire::recording::{Entry, What};

/// One line of a recording.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Seconds since the process was started.
    pub(crate) t: f64,
    pub(crate) dir: Direction,
    /// The line as it was on the pipe, without its `\n`.
    pub(crate) bytes: Vec<u8>,
    /// Whether the line ended in `\n`.
    pub(crate) eol: bool,
}

impl Row {
    /// The line and the `\n` that it had.
    pub(crate) fn wire_bytes(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if self.eol {
            bytes.push(b'\n');
        }
        bytes
    }
}

/// One run of the official runtime.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
}

impl Recording {
    /// The lines of one direction, in order.
    pub(crate) fn lines(&self, dir: Direction) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.dir == dir)
    }

    /// All bytes of one direction.
    pub(crate) fn stream(&self, dir: Direction) -> Vec<u8> {
        self.lines(dir).flat_map(Row::wire_bytes).collect()
    }
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// All recordings, sorted by name.
pub(crate) fn all() -> Vec<Recording> {
    let mut recordings: Vec<_> = std::fs::read_dir(fixtures())
        .expect("the fixtures are in the repository")
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| read(&path))
        .collect();
    recordings.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(recordings.len() > 80, "only {} recordings", recordings.len());
    recordings
}

/// The recording of one scenario.
pub(crate) fn named(name: &str) -> Recording {
    read(&fixtures().join(name).with_extension("jsonl"))
}

fn read(path: &Path) -> Recording {
    let name = path.file_stem().and_then(|stem| stem.to_str()).expect("a plain name").to_owned();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let rows = text.split_terminator('\n').map(|line| row(&name, line)).collect();
    Recording { name, rows }
}

fn row(name: &str, line: &str) -> Row {
    let Entry { at, direction, what } = Entry::parse(line).unwrap_or_else(|error| panic!("{name}: {error}"));
    let What::Line { bytes, eol } = what else { panic!("{name}: a fixture has all its lines") };
    Row { t: at.as_secs_f64(), dir: direction, bytes, eol }
}
