//! What goes by, for people to read while it does.

use std::fs::File;
use std::io::Write;

use dsh_wire::line::DEFAULT_LIMIT;
use dsh_wire::recording::{Calls, Direction, Entry};

use super::spool::{Lines, Part, Piece, Spool};
use crate::inspect::facts::Facts;
use crate::inspect::input::{Content, Format, Item};
use crate::inspect::table::Table;
use crate::terminal::{Styles, columns};

/// Shows the rows of `inspect`, and what the runtime says on stderr as it is, as long as there is somebody to see it.
/// Nobody else writes to this stream, so that who waits for its reader holds up nobody.
pub(super) fn run(spool: &Spool, mut stderr: File) {
    let table = Table::new(Format::Recording, columns(&stderr), Styles::of(&stderr));
    let (mut calls, mut scratch) = (Calls::default(), String::new());
    let mut streams: [Lines; 3] = Default::default();
    // As in the log.
    let mut number = 0;
    let mut out = Vec::new();
    // Memory takes everything.
    let _ = table.write_heading(&mut out);
    while let Some(pieces) = spool.take() {
        for Piece { at, direction, what: part } in pieces {
            if let (Direction::Stderr, Part::Bytes(bytes)) = (direction, &part) {
                out.extend_from_slice(bytes);
            }
            let Some(lines) = streams.get_mut(direction as usize) else { continue };
            lines.push(&part, |what| {
                number += 1;
                let entry = Entry { at, direction, what };
                let Some(item) = Item::recorded(number, &entry, DEFAULT_LIMIT, &mut scratch) else { return };
                if !matches!(item.content, Content::Stderr) {
                    let _ = table.write_row(&mut out, &item, &Facts::of(&item, &mut calls));
                }
            });
            if stderr.write_all(&std::mem::take(&mut out)).is_err() {
                return;
            }
            spool.advance();
        }
    }
}
