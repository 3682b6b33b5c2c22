//! The summary of a stream.

use std::io::{self, Write};

use super::filter::Kind;
use super::input::{Format, Input};
use crate::terminal::Count;

/// What the whole stream holds, whatever is shown of it.
#[derive(Default)]
pub(crate) struct Counts {
    requests: u64,
    notifications: u64,
    responses: u64,
    dropped: u64,
    stderr: u64,
    lost: u64,
    damaged: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, kind: Kind) {
        *match kind {
            Kind::Request => &mut self.requests,
            Kind::Notification => &mut self.notifications,
            Kind::Response | Kind::Error => &mut self.responses,
            Kind::Dropped => &mut self.dropped,
            Kind::Stderr => &mut self.stderr,
            Kind::Lost => &mut self.lost,
            Kind::Damaged => &mut self.damaged,
        } += 1;
    }

    pub(crate) fn write_json(&self, out: &mut impl Write, input: &Input, shown: Option<u64>) -> io::Result<()> {
        let Self { requests, notifications, responses, dropped, stderr, lost, damaged } = self;
        let (bytes, lines, blank) = (input.bytes(), input.lines(), input.blank_lines());
        write!(out, r#"{{"kind":"summary","bytes":{bytes},"lines":{lines},"requests":{requests},"#)?;
        write!(out, r#""notifications":{notifications},"responses":{responses},"#)?;
        write!(out, r#""dropped":{dropped},"blank":{blank}"#)?;
        if input.format() == Format::Recording {
            write!(out, r#","stderr":{stderr},"lost":{lost},"damaged":{damaged}"#)?;
        }
        if let Some(shown) = shown {
            write!(out, r#","shown":{shown}"#)?;
        }
        out.write_all(b"}\n")
    }

    pub(crate) fn write_table(&self, out: &mut impl Write, input: &Input, shown: Option<u64>) -> io::Result<()> {
        write!(out, "{}, {}: ", Count(input.lines(), "line"), Count(input.bytes(), "byte"))?;
        write!(out, "{}, ", Count(self.requests, "request"))?;
        write!(out, "{}, ", Count(self.notifications, "notification"))?;
        write!(out, "{}, ", Count(self.responses, "response"))?;
        write!(out, "{} dropped, {} blank", self.dropped, input.blank_lines())?;
        for (count, what) in [(self.stderr, "stderr"), (self.lost, "lost"), (self.damaged, "damaged")] {
            if count > 0 {
                write!(out, ", {count} {what}")?;
            }
        }
        match shown {
            Some(shown) => writeln!(out, "; {shown} shown"),
            None => writeln!(out),
        }
    }
}
