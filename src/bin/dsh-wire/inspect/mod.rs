//! `dsh-wire inspect`: what a byte stream or a recording holds, line by line, while it comes.

mod counts;
mod detail;
pub(crate) mod facts;
pub(crate) mod filter;
mod histogram;
pub(crate) mod input;
mod json;
mod progress;
mod stats;
pub(crate) mod table;
mod text;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use dsh_wire::line::DEFAULT_LIMIT;
use dsh_wire::recording::Calls;

use crate::failure::Failure;
use crate::terminal::{Styles, columns};

use counts::Counts;
use facts::Facts;
use filter::{Filter, Kind};
use input::{Format, Input};
use progress::Progress;
use stats::Stats;
use table::Table;

/// Show what a byte stream or a recording of the protocol holds, line by line
///
/// Each line is taken as the reference implementation takes it: as a request, a response, a notification, or one that
/// is dropped. In a recording, responses are shown with the request that they answer and the time since that. The exit
/// code is 0 whatever the lines hold.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dsh --profile sdk < requests.jsonl | dsh-wire inspect
  dsh-wire inspect session.jsonl --session s1 --event 'tool/*'
  dsh-wire inspect session.jsonl --kind error --kind dropped
  dsh-wire inspect session.jsonl --stats
  dsh-wire inspect --json captured.bin | jq 'select(.kind == \"dropped\")'")]
pub(crate) struct Args {
    /// The bytes or the recording to read; `-` or nothing is stdin
    file: Option<PathBuf>,

    /// What the file is [default: what its first line looks like]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Print one JSON object for each line, and a summary at the end
    #[arg(long, conflicts_with = "stats")]
    json: bool,

    /// Print figures instead of lines: latency by method, bytes by type of event, the largest frames, why lines were
    /// dropped
    #[arg(long)]
    stats: bool,

    /// The longest line that is kept
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_LIMIT)]
    limit: usize,

    #[command(flatten)]
    filter: Filter,
}

pub(crate) fn inspect(args: &Args) -> Result<(), Failure> {
    let mut input = Input::open(args.file.as_deref(), args.format, args.limit)?;
    let stdout = io::stdout().lock();
    let styles = Styles::of(&stdout);
    let mut progress = Progress::new(args.stats || !stdout.is_terminal());
    let table = Table::new(input.format(), columns(&stdout), styles);
    let mut out = BufWriter::with_capacity(64 << 10, stdout);
    let (mut counts, mut stats, mut calls) = (Counts::default(), Stats::default(), Calls::default());
    let (mut shown, mut row) = (0, String::new());
    // What is known of a line costs a look into it.
    let plain = args.json && args.filter.is_empty();
    if !args.json && !args.stats {
        table.write_heading(&mut out).map_err(Failure::output)?;
    }
    loop {
        input.each(|item| {
            counts.add(Kind::of(&item.content));
            let facts = if plain { Facts::default() } else { Facts::of(item, &mut calls) };
            if !args.filter.passes(item, &facts) {
                return Ok(());
            }
            shown += 1;
            if args.stats {
                stats.add(item, &facts);
                return Ok(());
            }
            let written = if args.json {
                json::write_row(&mut out, item, &mut row)
            } else {
                table.write_row(&mut out, item, &facts)
            };
            written.map_err(Failure::output)
        })?;
        // Shown before more is waited for.
        out.flush().map_err(Failure::output)?;
        progress.tick(&input);
        if input.is_over() {
            break;
        }
        input.more()?;
    }
    progress.clear();
    let shown = (!args.filter.is_empty()).then_some(shown);
    let written = if args.json {
        counts.write_json(&mut out, &input, shown)
    } else {
        let unanswered = calls.unanswered().filter(|call| args.filter.passes_call(call));
        let figures = if args.stats { stats.write(&mut out, unanswered, styles) } else { Ok(()) };
        figures.and_then(|()| counts.write_table(&mut out, &input, shown))
    };
    written.and_then(|()| out.flush()).map_err(Failure::output)
}
