//! The table for people: one row a line, in columns that fit the terminal.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use clap::builder::styling::Style;
use dsh_wire::frame::{Frame, NotAFrame, RpcError};
use dsh_wire::peer::DropReason;
use dsh_wire::recording::Direction;

use super::detail;
use super::facts::Facts;
use super::filter::Kind;
use super::input::{Content, Format, Item};
use super::text::{Seconds, cut, padded};
use crate::terminal::{Count, Styles, Visible, without_middle};

pub(crate) struct Table {
    styles: Styles,
    /// Of a recording: with times and directions.
    recording: bool,
    /// Columns for the length.
    bytes: usize,
    /// Columns for the session.
    session: usize,
    /// Columns for the id; none where there is no room.
    id: usize,
    /// Columns for the rest.
    what: usize,
}

/// Where this much is known to be shown, everything has its column.
const WIDE: usize = 120;

/// The rest of a row in a pipe, and text that is told whole on a terminal, which wraps it.
const LONG: usize = 160;

/// How much of a dropped line is shown, in columns.
const EXCERPT: usize = 60;

impl Table {
    /// For a terminal of that many columns, or for none.
    pub(crate) fn new(format: Format, columns: Option<usize>, styles: Styles) -> Self {
        let recording = format == Format::Recording;
        let wide = columns.is_none_or(|columns| columns >= WIDE);
        let (bytes, session, id) = if wide { (9, 12, 12) } else { (7, 8, 0) };
        let mut table = Self { styles, recording, bytes, session, id, what: LONG };
        if let Some(columns) = columns {
            table.what = columns.saturating_sub(table.indent()).max(20);
        }
        table
    }

    /// Columns before the rest of a row.
    fn indent(&self) -> usize {
        let origin = if self.recording { 9 + 2 + 1 + 2 } else { 0 };
        let latency = if self.recording && self.id > 0 { 9 + 2 } else { 0 };
        let id = if self.id > 0 { self.id + 2 } else { 0 };
        6 + 2 + origin + 12 + 2 + self.bytes + 2 + latency + self.session + 2 + id
    }

    pub(crate) fn write_heading(&self, out: &mut impl Write) -> io::Result<()> {
        let bold = self.styles.heading();
        write!(out, "{bold}{:>6}  ", "line")?;
        if self.recording {
            write!(out, "{:>9}     ", "time")?;
        }
        write!(out, "{:<12}  {:>width$}  ", "kind", "bytes", width = self.bytes)?;
        if self.recording && self.id > 0 {
            write!(out, "{:>9}  ", "latency")?;
        }
        write!(out, "{:<width$}  ", "session", width = self.session)?;
        if self.id > 0 {
            write!(out, "{:<width$}  ", "id", width = self.id)?;
        }
        writeln!(out, "what{bold:#}")
    }

    pub(crate) fn write_row(&self, out: &mut impl Write, item: &Item<'_>, facts: &Facts<'_>) -> io::Result<()> {
        let kind = Kind::of(&item.content);
        let style = self.style(kind);
        write!(out, "{:>6}  ", item.number)?;
        if self.recording {
            let faint = self.styles.faint();
            match item.origin {
                Some(origin) => {
                    let arrow = match origin.direction {
                        Direction::ClientToServer => "→",
                        Direction::ServerToClient => "←",
                        Direction::Stderr => "!",
                    };
                    write!(out, "{faint}{:>9.3}{faint:#}  {style}{arrow}{style:#}  ", origin.at.as_secs_f64())?;
                }
                None => write!(out, "{:14}", "")?,
            }
        }
        write!(out, "{style}{:<12}{style:#}  {:>width$}  ", kind.name(), item.len, width = self.bytes)?;
        let what = self.what(item, facts);
        if !matches!(item.content, Content::Frame(_)) {
            // It belongs to nothing, so it may have the room.
            return writeln!(out, "{what}");
        }
        if self.recording && self.id > 0 {
            let latency = facts.latency.map(|latency| Seconds(latency).to_string()).unwrap_or_default();
            write!(out, "{latency:>9}  ")?;
        }
        let session = facts.session.as_deref().unwrap_or_default();
        write!(out, "{}  ", padded(&without_middle(session, self.session), self.session))?;
        if self.id > 0 {
            write!(out, "{}  ", padded(&without_middle(id(&item.content), self.id), self.id))?;
        }
        let style = if kind.is_bad() { style } else { Style::new() };
        writeln!(out, "{style}{what}{style:#}")
    }

    fn style(&self, kind: Kind) -> Style {
        match kind {
            Kind::Request => self.styles.aside(),
            Kind::Response => self.styles.good(),
            Kind::Notification => Style::new(),
            Kind::Stderr => self.styles.faint(),
            Kind::Error | Kind::Dropped | Kind::Lost | Kind::Damaged => self.styles.bad(),
        }
    }

    fn what(&self, item: &Item<'_>, facts: &Facts<'_>) -> String {
        let (method, bad) = (facts.method.as_deref(), self.styles.bad());
        match &item.content {
            Content::Frame(Frame::Request { params, .. }) => {
                self.named(method.unwrap_or_default(), detail::of_request(*params))
            }
            Content::Frame(Frame::Notification { params, .. }) => match &facts.event {
                Some(event) => self.named(&event.kind, detail::of_event(event)),
                None => self.named(method.unwrap_or_default(), detail::of_notification(*params)),
            },
            Content::Frame(Frame::Response { outcome: Ok(result), .. }) => {
                self.named(&self.answered(method, facts.latency), Some(result.get().into()))
            }
            Content::Frame(Frame::Response { outcome: Err(error), .. }) => {
                let text = format!("{}  error: {}", self.answered(method, facts.latency), RpcError::from(*error));
                cut(text.trim_start(), LONG)
            }
            Content::Dropped(why) => format!("{bad}{why}{bad:#}  {}", self.excerpt(*why, item.bytes)),
            Content::Damaged(why) => {
                format!("{bad}no entry of a recording: {why}{bad:#}  {}", cut(&lossy(item.bytes), EXCERPT))
            }
            Content::Stderr => {
                let faint = self.styles.faint();
                format!("{faint}{}{faint:#}", cut(&lossy(item.bytes), LONG))
            }
            Content::Lost => format!("{bad}{} that the recorder could not keep{bad:#}", Count(item.len, "byte")),
        }
    }

    /// The request that was answered; with the time that it took, where there is no column for that.
    fn answered(&self, method: Option<&str>, latency: Option<Duration>) -> String {
        let method = method.unwrap_or_default();
        match latency.filter(|_| self.id == 0) {
            Some(latency) => format!("{method} ({})", Seconds(latency)),
            None => method.into(),
        }
    }

    fn named(&self, name: &str, detail: Option<String>) -> String {
        match (name, detail) {
            ("", Some(detail)) => cut(&detail, self.what),
            (name, Some(detail)) => cut(&format!("{name}  {detail}"), self.what),
            (name, None) => cut(name, self.what),
        }
    }

    /// The part of a dropped line that tells most: around the fault, which is marked, else the start.
    fn excerpt(&self, why: DropReason, bytes: &[u8]) -> String {
        let DropReason::NotAFrame(NotAFrame::Syntax(error)) = why else {
            return cut(&lossy(bytes), EXCERPT);
        };
        // Where UTF-8 was broken, the offset is one in the repaired text.
        let text = lossy(bytes);
        let at = text.floor_char_boundary(error.at);
        let (before, behind) = text.split_at(at);
        let from = before.floor_char_boundary(before.len().saturating_sub(30));
        let (ellipsis, before) = if at > 40 { ("…", before.get(from..).unwrap_or_default()) } else { ("", before) };
        let bad = self.styles.bad();
        let behind = cut(behind.get(..behind.floor_char_boundary(4 * EXCERPT)).unwrap_or_default(), EXCERPT / 2);
        format!("{ellipsis}{}{bad}▸{bad:#}{behind}", Visible(before))
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn id<'a>(content: &Content<'a>) -> &'a str {
    match content {
        Content::Frame(Frame::Request { id, .. } | Frame::Response { id, .. }) => id.get(),
        _ => "",
    }
}
