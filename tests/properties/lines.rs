//! Bytes to lines, whatever the cuts.

use dsh_wire::line::{Line, LineBuffer};

use super::choices::Choices;
use super::oracle;

/// A [`Line`] that owns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Whole { number: u64, bytes: Vec<u8> },
    Overflowing { number: u64, prefix: Vec<u8> },
    TooLong { number: u64, len: u64, prefix: Vec<u8> },
    Unterminated { number: u64, len: u64, prefix: Vec<u8> },
}

/// All lines of a stream, by splitting it when it is all there.
pub(crate) fn naive(stream: &[u8], limit: usize) -> Vec<Item> {
    let mut items = Vec::new();
    let mut pieces: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let tail = pieces.pop().unwrap();
    let mut number = 0;
    let head = |line: &[u8], at_most: usize| line[..line.len().min(at_most)].to_vec();
    for line in pieces {
        number += 1;
        let len = line.len() as u64;
        if line.len() > limit {
            let prefix = head(line, limit.min(256));
            items.push(Item::Overflowing { number, prefix: prefix.clone() });
            items.push(Item::TooLong { number, len, prefix });
        } else if !is_blank(line) {
            items.push(Item::Whole { number, bytes: line.to_vec() });
        }
    }
    number += 1;
    let len = tail.len() as u64;
    if tail.len() > limit {
        let prefix = head(tail, limit.min(256));
        items.push(Item::Overflowing { number, prefix: prefix.clone() });
        items.push(Item::Unterminated { number, len, prefix });
    } else if !is_blank(tail) {
        items.push(Item::Unterminated { number, len, prefix: head(tail, 256) });
    }
    items
}

fn is_blank(line: &[u8]) -> bool {
    oracle::trim(&oracle::decode(line)).1.is_empty()
}

/// First byte the limit, then how many cuts there are, the cuts, and the stream.
pub(crate) fn check(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let limit = [0, 1, 2, 7, 8, 31, 255, 256, 257, 300, 1000, 64 << 20][choices.below(12)];
    let cuts: Vec<usize> = (0..choices.below(16)).map(|_| choices.byte().into()).collect();
    let lazy = choices.flag();
    let stream = choices.rest();
    let expected = naive(stream, limit);
    assert_eq!(pushed(stream, limit, &[usize::MAX], false), expected, "in one piece, limit {limit}");
    assert_eq!(pushed(stream, limit, &[1], false), expected, "byte by byte, limit {limit}");
    assert_eq!(pushed(stream, limit, &cuts, lazy), expected, "cut by {cuts:?}, limit {limit}");
    #[cfg(feature = "std")]
    assert_eq!(read(stream, limit, &cuts), expected, "read by {cuts:?}, limit {limit}");
}

/// The lines of a stream pushed in pieces of these lengths, over and over; `lazy` takes lines only at some of them.
fn pushed(stream: &[u8], limit: usize, cuts: &[usize], lazy: bool) -> Vec<Item> {
    let mut lines = LineBuffer::with_limit(limit);
    let mut items = Vec::new();
    for (turn, piece) in pieces(stream, cuts).enumerate() {
        lines.push(piece);
        if !lazy || turn % 3 == 2 {
            drain(&mut lines, &mut items);
            assert!(lines.buffered() <= limit, "more is kept than the limit: {}", lines.buffered());
        }
    }
    finish(lines, stream, items)
}

/// The same through `read_from`.
#[cfg(feature = "std")]
fn read(stream: &[u8], limit: usize, cuts: &[usize]) -> Vec<Item> {
    struct InPieces<I>(I);
    impl<'a, I: Iterator<Item = &'a [u8]>> std::io::Read for InPieces<I> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let Some(piece) = self.0.next() else { return Ok(0) };
            buf[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }
    let mut lines = LineBuffer::with_limit(limit);
    let mut items = Vec::new();
    let mut source = InPieces(pieces(stream, cuts).flat_map(|piece| piece.chunks(1000)));
    while lines.read_from(&mut source).unwrap() > 0 {
        drain(&mut lines, &mut items);
        assert!(lines.buffered() <= limit, "more is kept than the limit: {}", lines.buffered());
    }
    finish(lines, stream, items)
}

fn finish(mut lines: LineBuffer, stream: &[u8], mut items: Vec<Item>) -> Vec<Item> {
    drain(&mut lines, &mut items);
    lines.end_input();
    lines.push(b"ignored\n");
    drain(&mut lines, &mut items);
    assert_eq!((lines.buffered(), lines.next_line()), (0, None));
    let ends = stream.iter().filter(|byte| **byte == b'\n').count() + usize::from(!stream.ends_with(b"\n"));
    assert_eq!(lines.lines(), if stream.is_empty() { 0 } else { ends as u64 });
    items
}

fn drain(lines: &mut LineBuffer, items: &mut Vec<Item>) {
    while let Some(line) = lines.next_line() {
        items.push(match line {
            Line::Whole { number, bytes } => Item::Whole { number, bytes: bytes.to_vec() },
            Line::Overflowing { number, prefix } => Item::Overflowing { number, prefix: prefix.to_vec() },
            Line::TooLong { number, len, prefix } => Item::TooLong { number, len, prefix: prefix.to_vec() },
            Line::Unterminated { number, len, prefix } => Item::Unterminated { number, len, prefix: prefix.to_vec() },
        });
    }
}

/// The stream in pieces of these lengths, over and over, none of them empty.
pub(crate) fn pieces<'a>(stream: &'a [u8], cuts: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut lens = cuts.iter().copied().cycle();
    let mut rest = stream;
    std::iter::from_fn(move || {
        let len = lens.next().unwrap_or(usize::MAX).clamp(1, rest.len().max(1));
        let piece = rest.split_off(..len.min(rest.len()))?;
        (!piece.is_empty()).then_some(piece)
    })
}
