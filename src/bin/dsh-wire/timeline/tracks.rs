//! Spans at the same time in the same lane lie in rows of their own.

use std::collections::HashMap;

use super::model::Line;
use super::spans::Span;

/// More rows than this are of no use to anybody: what does not fit lies in the last one.
const MOST: usize = 16;

/// Gives each span the first row of its kind that is free when it begins.
pub(crate) fn lay(spans: &mut [Span], lines: &[Line]) {
    let at = |line: usize| lines.get(line).map_or(0, |line| line.at);
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|span| spans.get(*span).map(|span| at(span.first)));
    let mut ends: HashMap<_, Vec<u64>> = HashMap::new();
    for index in order {
        let Some(span) = spans.get_mut(index) else { continue };
        let (first, last) = (at(span.first), span.last.map_or(u64::MAX, at));
        let rows = ends.entry((span.lane, span.kind)).or_default();
        span.track = rows.iter().position(|end| *end <= first).unwrap_or(rows.len()).min(MOST - 1);
        match rows.get_mut(span.track) {
            Some(end) => *end = last.max(*end),
            None => rows.push(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use dsh_wire::recording::Direction;

    use super::*;
    use crate::inspect::filter::Kind;
    use crate::timeline::spans::{End, SpanKind};

    #[test]
    fn spans_that_overlap_lie_below_each_other() {
        let lines: Vec<_> = (0..100).map(line).collect();
        let mut spans = [(0, Some(10)), (1, Some(3)), (3, Some(5)), (4, None), (10, Some(11))]
            .map(|(first, last)| span(first, last));
        lay(&mut spans, &lines);
        assert_eq!(spans.map(|span| span.track), [0, 1, 1, 2, 0]);
        let mut many: Vec<_> = (0..100).map(|first| span(first, None)).collect();
        lay(&mut many, &lines);
        assert_eq!(many.iter().map(|span| span.track).max(), Some(MOST - 1));
    }

    fn line(at: u64) -> Line {
        let direction = Some(Direction::ClientToServer);
        Line { number: 1, at, direction, kind: Kind::Request, lane: 0, name: 0, bytes: 0, text: String::new() }
    }

    fn span(first: usize, last: Option<usize>) -> Span {
        Span { kind: SpanKind::Request, lane: 0, name: 0, first, last, end: End::Well, track: 0 }
    }
}
