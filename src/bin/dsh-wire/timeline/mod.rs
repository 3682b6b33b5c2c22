//! `dsh-wire timeline`: a recording as a picture, one HTML page that needs nothing else.

mod model;
mod page;
mod spans;
mod tracks;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dsh_wire::line::DEFAULT_LIMIT;

use crate::failure::Failure;
use crate::inspect::input::{Format, Input};

use model::Timeline;

/// Draw a recording as one self-contained HTML page
///
/// A lane for each session, sub-agents below the one that started them; requests, turns, steps and tool calls as spans;
/// every line as a tick, with its text. The page loads nothing from anywhere, so it can be sent to others, but mind
/// that it holds what the recording holds; a new one can be read by its owner only.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  dsh-wire timeline session.jsonl -o session.html")]
pub(crate) struct Args {
    /// The recording; `-` is stdin
    file: PathBuf,

    /// The page; `-` is stdout
    #[arg(short, long, value_name = "PAGE")]
    output: PathBuf,

    /// How much of each line goes into the page
    #[arg(long, value_name = "BYTES", default_value_t = 4096)]
    line_bytes: usize,
}

pub(crate) fn timeline(args: &Args) -> Result<(), Failure> {
    let mut input = Input::open(Some(&args.file), None, DEFAULT_LIMIT)?;
    if input.format() == Format::Raw && input.bytes() > 0 {
        let file = args.file.display();
        return Err(Failure::usage(format!(
            "'{file}' is no recording: its first line has no time and direction; make one with `dsh-wire tap`"
        )));
    }
    if is_same_file(&args.file, &args.output) {
        let page = args.output.display();
        return Err(Failure::usage(format!("'{page}' is the recording itself: give the page another name")));
    }
    let mut timeline = Timeline::new(title(&args.file), args.line_bytes);
    loop {
        input.each(|item| {
            timeline.add(item);
            Ok(())
        })?;
        if input.is_over() {
            break;
        }
        input.more()?;
    }
    write(&args.output, &timeline.finish())
}

/// Whether the page would take the place of the recording, through whatever links.
fn is_same_file(recording: &Path, page: &Path) -> bool {
    let recording = if recording.as_os_str() == "-" { Path::new("/dev/stdin") } else { recording };
    let file = |path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| (file.dev(), file.ino()));
    page.as_os_str() != "-" && file(recording).is_some_and(|recording| file(page) == Some(recording))
}

fn title(file: &Path) -> String {
    file.file_name().map_or_else(|| "recording".into(), |name| name.to_string_lossy().into_owned())
}

fn write(output: &Path, timeline: &model::Finished) -> Result<(), Failure> {
    let to = |out: &mut dyn Write| page::write(out, timeline).and_then(|()| out.flush());
    if output.as_os_str() == "-" {
        return to(&mut BufWriter::new(io::stdout().lock())).map_err(Failure::output);
    }
    let name = output.display();
    // As in the recording, what is said is for nobody else's eyes.
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(output);
    let file = file.map_err(|error| Failure::usage(format!("cannot create '{name}': {error}")))?;
    to(&mut BufWriter::new(file)).map_err(|error| Failure::usage(format!("cannot write '{name}': {error}")))
}
