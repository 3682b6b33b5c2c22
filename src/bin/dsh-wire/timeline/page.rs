//! The page: its parts are the files beside this one, and the picture is JSON inside it.

use std::collections::hash_map::RandomState;
use std::fmt::Display;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};

use dsh_wire::json::JsonString;
use dsh_wire::recording::Direction;

use super::model::{Finished, Lane, Line};
use super::spans::{End, Span, SpanKind};
use crate::inspect::filter::Kind;

const FRAME: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: [&str; 7] = [
    include_str!("recording.js"),
    include_str!("view.js"),
    include_str!("layout.js"),
    include_str!("paint.js"),
    include_str!("detail.js"),
    include_str!("search.js"),
    include_str!("page.js"),
];

/// Writes the page. Only scripts with a number that is drawn for this page run in it, and nothing is loaded.
pub(crate) fn write(out: &mut dyn Write, timeline: &Finished) -> io::Result<()> {
    let nonce = format!("{:016x}{:016x}", random(), random());
    let mut rest = FRAME;
    while let Some((before, (name, behind))) =
        rest.split_once("{{").and_then(|(before, from)| Some((before, from.split_once("}}")?)))
    {
        out.write_all(before.as_bytes())?;
        match name {
            "nonce" => out.write_all(nonce.as_bytes())?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "script" => SCRIPT.iter().try_for_each(|part| out.write_all(part.as_bytes()))?,
            "data" => write_data(out, timeline)?,
            _ => unreachable!("the page names no other part"),
        }
        rest = behind;
    }
    out.write_all(rest.as_bytes())
}

/// Of the operating system, by way of the seeds that it gives to hash maps.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The picture, column by column: a page with many lines opens faster so.
fn write_data(out: &mut dyn Write, timeline: &Finished) -> io::Result<()> {
    let Finished { title, names, lanes, lines, spans } = timeline;
    write!(out, "{{\"title\":{},\n\"names\":", quoted(title))?;
    write_list(out, names.iter().map(|name| quoted(name)))?;
    out.write_all(b",\n\"lanes\":{\"name\":")?;
    write_list(out, lanes.iter().map(|lane| quoted(&lane.name)))?;
    write_column(out, "depth", lanes.iter().map(|Lane { depth, .. }| depth))?;
    out.write_all(b"},\n\"spans\":{\"kind\":")?;
    write_list(out, spans.iter().map(|span| kind_of_span(span.kind)))?;
    write_column(out, "lane", spans.iter().map(|Span { lane, .. }| lane))?;
    write_column(out, "track", spans.iter().map(|Span { track, .. }| track))?;
    write_column(out, "name", spans.iter().map(|Span { name, .. }| name))?;
    write_column(out, "first", spans.iter().map(|Span { first, .. }| first))?;
    write_column(out, "last", spans.iter().map(|span| span.last.map_or(-1, |line| line as i64)))?;
    write_column(out, "end", spans.iter().map(|span| end_of_span(span.end)))?;
    out.write_all(b"},\n\"lines\":{\"number\":")?;
    write_list(out, lines.iter().map(|line| line.number))?;
    write_column(out, "at", lines.iter().map(|Line { at, .. }| at))?;
    write_column(out, "way", lines.iter().map(|line| way(line.direction)))?;
    write_column(out, "kind", lines.iter().map(|line| kind_of_line(line.kind)))?;
    write_column(out, "lane", lines.iter().map(|Line { lane, .. }| lane))?;
    write_column(out, "name", lines.iter().map(|Line { name, .. }| name))?;
    write_column(out, "bytes", lines.iter().map(|Line { bytes, .. }| bytes))?;
    write_column(out, "text", lines.iter().map(|Line { text, .. }| quoted(text)))?;
    out.write_all(b"}}")
}

fn write_column(out: &mut dyn Write, name: &str, values: impl Iterator<Item = impl Display>) -> io::Result<()> {
    write!(out, ",\n\"{name}\":")?;
    write_list(out, values)
}

fn write_list(out: &mut dyn Write, values: impl Iterator<Item = impl Display>) -> io::Result<()> {
    out.write_all(b"[")?;
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        write!(out, "{value}")?;
    }
    out.write_all(b"]")
}

/// A JSON string in which no HTML parser sees anything: `<` begins every mark that could end the script or open a
/// comment. The line separators are for those who take the text for JavaScript.
fn quoted(text: &str) -> String {
    let json = JsonString::from(text);
    let json = json.as_json_str().get();
    if !json.contains(['<', '\u{2028}', '\u{2029}']) {
        return json.to_owned();
    }
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// The numbers below are those of `recording.js`.
fn way(direction: Option<Direction>) -> u8 {
    match direction {
        Some(Direction::ClientToServer) => 0,
        Some(Direction::ServerToClient) => 1,
        Some(Direction::Stderr) | None => 2,
    }
}

fn kind_of_line(kind: Kind) -> u8 {
    match kind {
        Kind::Request => 0,
        Kind::Response => 1,
        Kind::Error => 2,
        Kind::Notification => 3,
        Kind::Dropped => 4,
        Kind::Stderr => 5,
        Kind::Lost => 6,
        Kind::Damaged => 7,
    }
}

fn kind_of_span(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Request => 0,
        SpanKind::Turn => 1,
        SpanKind::Step => 2,
        SpanKind::Tool => 3,
    }
}

fn end_of_span(end: End) -> u8 {
    match end {
        End::Well => 0,
        End::Failed => 1,
        End::Open => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_inside_its_string() {
        assert_eq!(quoted("</script><!--"), r#""\u003c/script>\u003c!--""#);
        assert_eq!(quoted("\u{2028}\u{2029}\"\\\n\0"), r#""\u2028\u2029\"\\\n\u0000""#);
    }

    #[test]
    fn the_page_loads_nothing() {
        for part in [FRAME, STYLE].iter().chain(&SCRIPT) {
            for word in
                ["http:", "https:", "//www", "url(", "import ", "fetch(", "XMLHttp", "WebSocket", "innerHTML", "eval("]
            {
                assert!(!part.contains(word), "{word}");
            }
        }
    }
}
