//! What people see: colours where they are wanted, and text of the peer's that cannot command the terminal.

use std::fmt::{self, Write};
use std::io::IsTerminal;
use std::os::fd::AsFd;

use clap::builder::styling::{AnsiColor, Style};

/// Text of the peer's on one line: what a terminal would obey, or show in another order, is written as an escape.
pub(crate) struct Visible<'a>(pub(crate) &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| write_visible(f, c))
    }
}

/// The same for text of many lines: line ends and tabs stay.
pub(crate) struct VisibleText<'a>(pub(crate) &'a str);

impl fmt::Display for VisibleText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\n' | '\t' => f.write_char(c)?,
                '\r' if chars.peek() == Some(&'\n') => {}
                c => write_visible(f, c)?,
            }
        }
        Ok(())
    }
}

fn write_visible(f: &mut fmt::Formatter<'_>, c: char) -> fmt::Result {
    if is_obeyed(c) { write!(f, "{}", c.escape_default()) } else { f.write_char(c) }
}

/// Control characters, line separators, and the marks that change the direction of text.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// JSON that says the same and has no such character but for white space: it can only stand in a string.
pub(crate) struct VisibleJson<'a>(pub(crate) &'a str);

impl fmt::Display for VisibleJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(|c| c >= '\u{7f}' && is_obeyed(c)) {
            let (before, from) = rest.split_at(at);
            let mut chars = from.chars();
            f.write_str(before)?;
            // None of them is beyond U+FFFF.
            chars.next().map_or(Ok(()), |c| write!(f, "\\u{:04x}", u32::from(c)))?;
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
}

/// Text of the peer's cut to at most `width` characters, the last one `…` where something is missing.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    let mut visible = Visible(text).to_string();
    if let Some((cut, _)) = visible.char_indices().nth(width) {
        visible.truncate(cut);
        visible.pop();
        visible.push('…');
    }
    visible
}

/// An id cut to at most `width` characters: both ends tell more than the middle.
pub(crate) fn without_middle(text: &str, width: usize) -> String {
    let visible: Vec<char> = Visible(text).to_string().chars().collect();
    let (head, tail) = (width / 2, width - width / 2 - 1);
    match (visible.get(..head), visible.len().checked_sub(tail).and_then(|at| visible.get(at..))) {
        (Some(head), Some(tail)) if visible.len() > width => head.iter().chain(&['…']).chain(tail).collect(),
        _ => visible.into_iter().collect(),
    }
}

/// A count and its noun, which takes an `s` unless it is one.
pub(crate) struct Count<'a>(pub(crate) u64, pub(crate) &'a str);

impl fmt::Display for Count<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, noun) = self;
        write!(f, "{count} {noun}{}", if *count == 1 { "" } else { "s" })
    }
}

/// The width of the terminal that a stream is, if it is one.
pub(crate) fn columns(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok()).flatten()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The styles for one stream; all plain where it is no terminal, or where the user wants no colours.
#[derive(Clone, Copy)]
pub(crate) struct Styles {
    colours: bool,
}

impl Styles {
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let refused = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
        Self { colours: !refused && stream.is_terminal() }
    }

    fn pick(self, style: Style) -> Style {
        if self.colours { style } else { Style::new() }
    }

    pub(crate) fn heading(self) -> Style {
        self.pick(Style::new().bold())
    }

    /// What stands beside the answer.
    pub(crate) fn aside(self) -> Style {
        self.pick(AnsiColor::Cyan.on_default())
    }

    /// What matters less.
    pub(crate) fn faint(self) -> Style {
        self.pick(Style::new().dimmed())
    }

    pub(crate) fn good(self) -> Style {
        self.pick(AnsiColor::Green.on_default())
    }

    pub(crate) fn doubtful(self) -> Style {
        self.pick(AnsiColor::Yellow.on_default())
    }

    pub(crate) fn bad(self) -> Style {
        self.pick(AnsiColor::Red.on_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| Count(count, "line").to_string()), ["0 lines", "1 line", "2 lines"]);
    }

    #[test]
    fn json_that_commands_no_terminal_says_the_same() {
        let json = "{\"a\":\"\u{7f}é\u{9b}2J\u{202e}你\",\"b\":\"\u{2028}\"}\n";
        let visible = VisibleJson(json).to_string();
        assert_eq!(visible, "{\"a\":\"\\u007fé\\u009b2J\\u202e你\",\"b\":\"\\u2028\"}\n");
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(parse(&visible), parse(json));
    }
}
