//! Figures of a whole conversation, in memory that does not grow with it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use dsh_wire::frame::NotAFrame;
use dsh_wire::peer::DropReason;

use super::facts::{Call, Facts};
use super::filter::Kind;
use super::histogram::Histogram;
use super::input::{Content, Item};
use super::text::{Bytes, Seconds, cut, padded};
use crate::terminal::Styles;

#[derive(Default)]
pub(crate) struct Stats {
    latencies: Groups<Histogram>,
    events: Groups<Sum>,
    notifications: Groups<Sum>,
    requests: Groups<Sum>,
    responses: Groups<Sum>,
    others: Groups<Sum>,
    dropped: Groups<Sum>,
    largest: Vec<Large>,
    total: Sum,
}

#[derive(Default, Clone, Copy)]
struct Sum {
    count: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        // What an entry says that it misses may be any number.
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// One of the largest frames.
struct Large {
    len: u64,
    number: u64,
    what: String,
}

/// So many of the largest frames are named.
const LARGEST: usize = 10;

impl Stats {
    pub(crate) fn add(&mut self, item: &Item<'_>, facts: &Facts<'_>) {
        let kind = Kind::of(&item.content);
        self.total.add(item.len);
        let method = facts.method.as_deref().unwrap_or("?");
        let sum = match (&facts.event, kind) {
            (Some(event), Kind::Notification) => self.events.of(&event.kind),
            (None, Kind::Notification) => self.notifications.of(method),
            (_, Kind::Request) => self.requests.of(method),
            (_, Kind::Response | Kind::Error) => self.responses.of(method),
            (_, kind) => self.others.of(kind.name()),
        };
        sum.add(item.len);
        if let Some(latency) = facts.latency {
            self.latencies.of(method).add(latency);
        }
        if let Content::Dropped(why) = item.content {
            self.dropped.of(&reason(why)).add(item.len);
        }
        if matches!(item.content, Content::Frame(_)) {
            self.note_large(item, kind, facts.event.as_ref().map_or(method, |event| &event.kind));
        }
    }

    fn note_large(&mut self, item: &Item<'_>, kind: Kind, name: &str) {
        let full = self.largest.len() == LARGEST;
        if full && self.largest.last().is_some_and(|least| least.len >= item.len) {
            return;
        }
        self.largest.truncate(LARGEST - 1);
        // Of equal ones the first stays before.
        let place = self.largest.partition_point(|other| other.len >= item.len);
        let what = format!("{}  {}", kind.name(), cut(name, NAME));
        self.largest.insert(place, Large { len: item.len, number: item.number, what });
    }

    /// With the requests that no answer has come for.
    pub(crate) fn write<'a>(
        &self,
        out: &mut impl Write,
        unanswered: impl Iterator<Item = &'a Call>,
        styles: Styles,
    ) -> io::Result<()> {
        let mut waiting = Groups::default();
        unanswered.for_each(|call| *waiting.of(&call.method) += 1);
        self.write_latencies(out, &waiting, styles)?;
        self.write_sums(out, styles)?;
        if !self.largest.is_empty() {
            heading(out, styles, format_args!("{:>12}  {:>9}  largest frames", "bytes", "line"))?;
            for Large { len, number, what } in &self.largest {
                writeln!(out, "{len:>12}  {number:>9}  {what}")?;
            }
            writeln!(out)?;
        }
        if !self.dropped.is_empty() {
            heading(out, styles, format_args!("{:>12}  {:>9}  dropped, by reason", "bytes", "lines"))?;
            for (name, sum) in self.dropped.sorted_by(|sum| sum.count) {
                writeln!(out, "{:>12}  {:>9}  {name}", sum.bytes, sum.count)?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn write_latencies(&self, out: &mut impl Write, unanswered: &Groups<u64>, styles: Styles) -> io::Result<()> {
        let bold = styles.heading();
        let mut rows: Vec<_> = self.latencies.sorted_by(Histogram::count);
        let none = Histogram::default();
        for (name, _) in unanswered.sorted_by(|count| *count) {
            if !self.latencies.has(name) {
                rows.push((name, &none));
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        write!(out, "{bold}{:<32}  {:>8}", "latency of", "answered")?;
        for column in ["median", "90 %", "99 %", "longest"] {
            write!(out, "  {column:>8}")?;
        }
        writeln!(out, "  {:>10}{bold:#}", "unanswered")?;
        for (name, histogram) in rows {
            write!(out, "{}  {:>8}", padded(&cut(name, 32), 32), histogram.count())?;
            for part in [0.5, 0.9, 0.99, 1.0] {
                let time = histogram.at(part).map(|time| Seconds(time).to_string());
                write!(out, "  {:>8}", time.unwrap_or_default())?;
            }
            match unanswered.get(name) {
                Some(count) => writeln!(out, "  {count:>10}")?,
                None => writeln!(out)?,
            }
        }
        writeln!(out)
    }

    fn write_sums(&self, out: &mut impl Write, styles: Styles) -> io::Result<()> {
        let mut rows: Vec<(&str, &str, Sum)> = Vec::new();
        for (kind, groups) in [
            ("event", &self.events),
            ("notification", &self.notifications),
            ("request", &self.requests),
            ("response", &self.responses),
            ("", &self.others),
        ] {
            rows.extend(groups.all().map(|(name, sum)| (kind, name, *sum)));
        }
        rows.sort_by_key(|&(kind, name, sum)| (Reverse(sum.bytes), kind, name));
        heading(out, styles, format_args!("{:>12}  {:>6}  {:>9}  {:>8}  what", "bytes", "share", "lines", "mean"))?;
        for (kind, name, Sum { count, bytes }) in rows {
            let share = bytes as f64 / self.total.bytes.max(1) as f64 * 100.0;
            let mean = Bytes(bytes / count.max(1)).to_string();
            let between = if kind.is_empty() { "" } else { "  " };
            writeln!(out, "{bytes:>12}  {share:>4.1} %  {count:>9}  {mean:>8}  {kind}{between}{}", cut(name, NAME))?;
        }
        writeln!(out)
    }
}

fn heading(out: &mut impl Write, styles: Styles, text: std::fmt::Arguments<'_>) -> io::Result<()> {
    let bold = styles.heading();
    writeln!(out, "{bold}{text}{bold:#}")
}

/// The reason without the place: those that differ in nothing else are one.
fn reason(why: DropReason) -> String {
    let text = why.to_string();
    match why {
        DropReason::NotAFrame(NotAFrame::Syntax(_)) => {
            text.split_once(": ").map(|(_, what)| format!("not JSON: {what}")).unwrap_or(text)
        }
        _ => text,
    }
}

/// Names are the peer's: no longer ones are kept, in characters.
const NAME: usize = 60;

/// Names are the peer's: no more are kept apart.
const NAMES: usize = 1000;

/// One value for each name.
struct Groups<T> {
    named: HashMap<Box<str>, T>,
    /// All names over the limit together.
    rest: Option<T>,
}

impl<T> Default for Groups<T> {
    fn default() -> Self {
        Self { named: HashMap::new(), rest: None }
    }
}

impl<T: Default> Groups<T> {
    fn of(&mut self, name: &str) -> &mut T {
        let name = match name.char_indices().nth(NAME) {
            Some((at, _)) => name.get(..at).unwrap_or_default(),
            None => name,
        };
        if self.named.len() < NAMES && !self.named.contains_key(name) {
            self.named.insert(name.into(), T::default());
        }
        match self.named.get_mut(name) {
            Some(value) => value,
            None => self.rest.get_or_insert_default(),
        }
    }
}

impl<T> Groups<T> {
    fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    fn get(&self, name: &str) -> Option<&T> {
        self.named.get(name)
    }

    fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    fn all(&self) -> impl Iterator<Item = (&str, &T)> {
        let rest = self.rest.iter().map(|rest| ("(all other names)", rest));
        self.named.iter().map(|(name, value)| (&**name, value)).chain(rest)
    }

    /// The largest first; equal ones by name.
    fn sorted_by(&self, size: impl Fn(&T) -> u64) -> Vec<(&str, &T)> {
        let mut all: Vec<_> = self.all().collect();
        all.sort_by(|(name, a), (other, b)| size(b).cmp(&size(a)).then(name.cmp(other)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_names_is_bounded() {
        let mut groups = Groups::<Sum>::default();
        for n in 0..5000 {
            groups.of(&format!("{n}{}", "x".repeat(1000))).add(1);
        }
        assert_eq!(groups.named.len(), NAMES);
        assert!(groups.named.keys().all(|name| name.len() <= NAME));
        assert_eq!(groups.all().map(|(_, sum)| sum.count).sum::<u64>(), 5000);
    }
}
