//! Text in columns: how much room characters take, and figures in a few digits.

use std::fmt;
use std::time::Duration;

use crate::terminal::Visible;

/// Columns that a character takes: two in the scripts of East Asia and for most emoji.
fn columns_of(c: char) -> usize {
    match c {
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Text of the peer's made visible and cut to so many columns, the last one `…` where something is missing.
pub(crate) fn cut(text: &str, width: usize) -> String {
    // An escape is longer than what it stands for, so no more than this can be shown.
    let end = text.char_indices().nth(width + 1).map_or(text.len(), |(at, _)| at);
    let visible = Visible(text.get(..end).unwrap_or_default()).to_string();
    let mut used = 0;
    // Where the text that fits beside an ellipsis ends.
    let mut fits = 0;
    for (at, c) in visible.char_indices() {
        used += columns_of(c);
        if used < width {
            fits = at + c.len_utf8();
        }
        if used > width {
            return format!("{}…", visible.get(..fits).unwrap_or_default());
        }
    }
    visible
}

/// Visible text, filled up to so many columns.
pub(crate) fn padded(text: &str, width: usize) -> String {
    let used: usize = text.chars().map(columns_of).sum();
    format!("{text}{:missing$}", "", missing = width.saturating_sub(used))
}

/// A time in three digits and its unit.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs_f64();
        let (value, unit) = match seconds {
            ..0.000_999_5 => (seconds * 1e6, "µs"),
            ..0.999_5 => (seconds * 1e3, "ms"),
            _ => (seconds, "s"),
        };
        write!(f, "{value:.*} {unit}", decimals(value))
    }
}

/// A number of bytes in three digits and its unit.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            ..1000 => write!(f, "{} B", self.0),
            1000..999_500 => write!(f, "{:.*} kB", decimals(bytes / 1e3), bytes / 1e3),
            999_500..999_500_000 => write!(f, "{:.*} MB", decimals(bytes / 1e6), bytes / 1e6),
            _ => write!(f, "{:.*} GB", decimals(bytes / 1e9), bytes / 1e9),
        }
    }
}

/// Decimals that make three digits.
fn decimals(value: f64) -> usize {
    match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_columns() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello!", 5), "hell…");
        assert_eq!(cut("你好世", 6), "你好世");
        assert_eq!(cut("你好世界", 6), "你好…");
        assert_eq!(cut("a\nb", 4), "a\\nb");
        assert_eq!(cut("a\nbc", 4), "a\\n…");
        assert_eq!(padded("你", 4), "你  ");
    }

    #[test]
    fn figures_have_three_digits() {
        let seconds = |micros| Seconds(Duration::from_micros(micros)).to_string();
        assert_eq!([0, 7, 999, 1000, 12_345].map(seconds), ["0.00 µs", "7.00 µs", "999 µs", "1.00 ms", "12.3 ms"]);
        assert_eq!(
            [999_499, 999_500, 61_000_000, 1_234_000_000].map(seconds),
            ["999 ms", "1.00 s", "61.0 s", "1234 s"]
        );
        let bytes = |bytes| Bytes(bytes).to_string();
        assert_eq!([0, 999, 1000, 999_499, 999_500].map(bytes), ["0 B", "999 B", "1.00 kB", "999 kB", "1.00 MB"]);
        assert_eq!([12_340_000, 1 << 40].map(bytes), ["12.3 MB", "1100 GB"]);
    }
}
