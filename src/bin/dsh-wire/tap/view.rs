//! What goes by, for people to read while it does.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use clap::builder::styling::Style;
use dsh_wire::frame::Frame;
use dsh_wire::json::{Json, JsonStr};
use dsh_wire::recording::Direction;

use super::spool::{Lines, Part, Piece, Seen, Spool};
use crate::terminal::{Styles, shortened, without_middle};

/// Shows one line a line, and what the runtime says on stderr as it is, as long as there is somebody to see it. Nobody else
/// writes to this stream, so that who waits for its reader holds up nobody.
pub(super) fn run(spool: &Spool, mut stderr: File) {
    let styles = Styles::of(&stderr);
    let (mut to_server, mut to_client) = (Lines::default(), Lines::default());
    let mut scratch = String::new();
    while let Some(pieces) = spool.take() {
        let mut out = Vec::new();
        for Piece { at, direction, what } in pieces {
            let lines = match direction {
                Direction::ClientToServer => &mut to_server,
                Direction::ServerToClient => &mut to_client,
                Direction::Stderr => {
                    match what {
                        Part::Bytes(bytes) => out.extend(bytes),
                        Part::Lost { bytes, .. } => {
                            show(&mut out, styles, at, direction, &Seen::Lost(bytes), &mut scratch)
                        }
                        Part::End => {}
                    }
                    continue;
                }
            };
            lines.push(&what, |seen| show(&mut out, styles, at, direction, &seen, &mut scratch));
        }
        if stderr.write_all(&out).is_err() {
            return;
        }
    }
}

fn show(out: &mut Vec<u8>, styles: Styles, at: Duration, direction: Direction, seen: &Seen<'_>, scratch: &mut String) {
    let arrow = match direction {
        Direction::ClientToServer => "→",
        Direction::ServerToClient => "←",
        Direction::Stderr => "!",
    };
    let (style, kind, what, len) = match seen {
        Seen::Lost(bytes) => (styles.bad(), "lost", String::new(), *bytes),
        Seen::Line { bytes, eol } => {
            let len = bytes.len() as u64 + u64::from(*eol);
            match Frame::decode(bytes, scratch) {
                Ok(Frame::Request { id, method, params }) => {
                    (styles.heading(), "request", format!("{}  {}", about(method, params), short(id.get())), len)
                }
                Ok(Frame::Notification { method, params }) => {
                    (Style::new(), "notification", about(method, params), len)
                }
                Ok(Frame::Response { id, outcome: Ok(_) }) => (styles.aside(), "result", short(id.get()), len),
                Ok(Frame::Response { id, outcome: Err(_) }) => (styles.bad(), "error", short(id.get()), len),
                Err(why) => (styles.bad(), "no frame", why.to_string(), len),
            }
        }
    };
    let (faint, seconds) = (styles.faint(), at.as_secs_f64());
    // Memory takes everything.
    let _ = writeln!(
        out,
        "{faint}{seconds:>9.3}{faint:#} {arrow} {style}{kind:<12}{style:#} {} {faint}{len} bytes{faint:#}",
        shortened(&what, 100)
    );
}

fn short(id: &str) -> String {
    without_middle(id, 18)
}

/// The method, and what tells one from another.
fn about(method: JsonStr<'_>, params: Json<'_>) -> String {
    let mut text = method.to_string_lossy().into_owned();
    let event_type = params.member("event").and_then(|event| event.member("type"));
    for value in [params.member("sessionId"), params.member("status"), event_type].into_iter().flatten() {
        text.push_str("  ");
        text.push_str(&value.as_str().map_or(value.get().into(), JsonStr::to_string_lossy));
    }
    text
}
