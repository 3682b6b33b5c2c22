use alloc::vec;

use super::*;

/// Which variant, number, length, bytes.
type Seen = (&'static str, u64, u64, Vec<u8>);

/// Runs a stream in pieces of `chunk` bytes, taking lines as they come; returns what came out, owned.
fn run(stream: &[u8], limit: usize, chunk: usize) -> (Vec<Seen>, LineBuffer) {
    let mut lines = LineBuffer::with_limit(limit);
    let mut out = Vec::new();
    let mut drain = |lines: &mut LineBuffer| {
        while let Some(line) = lines.next_line() {
            out.push(match line {
                Line::Whole { number, bytes } => ("whole", number, bytes.len() as u64, bytes.to_vec()),
                Line::Overflowing { number, prefix } => ("overflowing", number, 0, prefix.to_vec()),
                Line::TooLong { number, len, prefix } => ("too long", number, len, prefix.to_vec()),
                Line::Unterminated { number, len, prefix } => ("unterminated", number, len, prefix.to_vec()),
            });
        }
    };
    for piece in stream.chunks(chunk.max(1)) {
        lines.push(piece);
        drain(&mut lines);
        assert!(lines.start <= lines.searched && lines.searched <= lines.end && lines.end <= lines.buf.len());
        assert!(lines.buf.len() <= (limit + chunk) * 2 + 16, "memory stays bounded: {}", lines.buf.len());
    }
    lines.end_input();
    drain(&mut lines);
    (out, lines)
}

#[test]
fn lines_do_not_depend_on_chunking_and_each_byte_is_searched_once() {
    let mut stream = b"a\n\n \t\r\n12345678\n123456789\n".to_vec();
    stream.extend_from_slice(&vec![b'x'; 3000]);
    stream.extend_from_slice(b"\r\xff\xc2\xa0\n\xc2\xa0\n\xc2\x85\n\nlast");
    for limit in [0, 1, 8, 9, 300, 2999, 3004, 5000] {
        let (whole, _) = run(&stream, limit, stream.len());
        for chunk in [1, 2, 3, 7, 64, 1000] {
            let (cut, lines) = run(&stream, limit, chunk);
            assert_eq!(cut, whole, "limit {limit}, chunk {chunk}");
            assert_eq!(lines.examined, stream.len() as u64, "limit {limit}, chunk {chunk}");
            assert_eq!((lines.lines(), lines.buffered()), (10, 0));
            // Where each blank line is within the limit.
            assert!(lines.blank_lines() == 4 || limit < 3, "{}", lines.blank_lines());
        }
    }
}

#[test]
fn a_long_line_is_reported_and_the_next_one_lives() {
    let (out, lines) = run(b"0123456789abc\n{}\n", 8, 4);
    assert_eq!(
        out,
        [
            ("overflowing", 1, 0, b"01234567".to_vec()),
            ("too long", 1, 13, b"01234567".to_vec()),
            ("whole", 2, 2, b"{}".to_vec()),
        ]
    );
    assert_eq!(lines.blank_lines(), 0);
}

#[test]
fn what_has_come_is_counted() {
    let mut lines = LineBuffer::new();
    lines.push(b"{}\n[1");
    assert_eq!((lines.lines(), lines.buffered()), (0, 5));
    assert!(lines.next_line().is_some() && lines.next_line().is_none());
    assert_eq!((lines.lines(), lines.buffered()), (1, 2));
    lines.push(b"]\n\n \t");
    lines.end_input();
    assert!(lines.next_line().is_some() && lines.next_line().is_none());
    assert_eq!((lines.lines(), lines.blank_lines(), lines.buffered()), (4, 2, 0));
}

#[test]
fn an_endless_line_is_not_kept_though_nobody_takes_lines() {
    let mut lines = LineBuffer::with_limit(1000);
    for _ in 0..10_000 {
        lines.push(&[b'x'; 100]);
        assert!(lines.buf.capacity() < 4096);
    }
    assert_eq!(lines.next_line(), Some(Line::Overflowing { number: 1, prefix: &[b'x'; 256] }));
    assert_eq!(lines.next_line(), None);
    lines.end_input();
    assert_eq!(lines.next_line(), Some(Line::Unterminated { number: 1, len: 1_000_000, prefix: &[b'x'; 256] }));
    assert_eq!(lines.next_line(), None);
}

#[test]
fn a_long_line_takes_little_more_than_its_length_and_gives_it_back() {
    let mut lines = LineBuffer::new();
    let piece = vec![b'x'; 4000];
    let mut grown = 0;
    // Not a power of two, so that doubling shows.
    for _ in 0..6400 {
        let before = lines.buf.capacity();
        lines.push(&piece);
        grown += u32::from(lines.buf.capacity() != before);
        assert!(lines.next_line().is_none());
    }
    let len = 6400 * piece.len();
    // Eight times the double, then an eighth at a time.
    assert!(grown < 45, "the line was moved {grown} times");
    assert!(lines.buf.capacity() <= len + len / 8 + piece.len(), "{} bytes", lines.buf.capacity());
    lines.push(b"\n");
    assert!(matches!(lines.next_line(), Some(Line::Whole { bytes, .. }) if bytes.len() == len));
    lines.push(b"{}\n");
    assert_eq!(lines.next_line(), Some(Line::Whole { number: 2, bytes: b"{}" }));
    assert!(lines.buf.capacity() <= 64 << 10, "{} bytes", lines.buf.capacity());
}

#[test]
fn the_room_of_what_was_taken_is_used_again() {
    let mut lines = LineBuffer::new();
    let piece = b"a line\n".repeat(1000);
    for _ in 0..1000 {
        lines.push(&piece);
        while lines.next_line().is_some() {}
        assert!(lines.buf.capacity() <= 16 << 10, "{} bytes", lines.buf.capacity());
    }
}

#[test]
fn a_buffer_that_is_never_empty_stays_small() {
    let mut lines = LineBuffer::new();
    lines.push(b"a");
    for _ in 0..100_000 {
        lines.push(b"\n");
        lines.push(b"a");
        assert!(matches!(lines.next_line(), Some(Line::Whole { bytes: b"a", .. })));
    }
    assert!(lines.buf.capacity() <= 16 << 10, "{} bytes", lines.buf.capacity());
}

/// Whoever takes a line for each that comes, and has a megabyte of them waiting, pays for no more than a few moves.
#[test]
fn a_backlog_is_moved_in_proportion_to_what_comes() {
    let mut lines = LineBuffer::new();
    let line = b"0123456789012345678901234567890123456789\n".as_slice();
    lines.push(&line.repeat(25_000));
    let (mut moved, mut received) = (0, 0);
    for _ in 0..100_000 {
        let before = (lines.start, lines.buffered());
        lines.push(line);
        received += line.len();
        if lines.start < before.0 {
            moved += before.1;
        }
        assert!(lines.next_line().is_some());
    }
    assert!(moved <= received * 8, "{moved} bytes moved for {received} received");
    assert!(lines.buf.capacity() <= 2 << 20, "{} bytes", lines.buf.capacity());
}

#[test]
fn an_empty_buffer_is_kept_unless_it_is_large() {
    let mut lines = LineBuffer::new();
    for (len, kept) in [(3 << 20, true), (5 << 20, false)] {
        lines.push(&[vec![b'x'; len], vec![b'\n']].concat());
        while lines.next_line().is_some() {}
        lines.push(b"{}\n");
        assert_eq!(lines.buf.capacity() > len, kept, "{len}: {} bytes", lines.buf.capacity());
    }
}

#[cfg(feature = "std")]
#[test]
fn reading_gives_the_same_lines_as_pushing() {
    let mut stream = b"one\n".repeat(40_000);
    stream.extend(vec![b'y'; 200_000]);
    stream.extend(b"\ntwo\nthree");
    let (pushed, _) = run(&stream, 150_000, 65_536);
    let mut lines = LineBuffer::with_limit(150_000);
    let mut source = &*stream;
    let mut count = 0;
    while lines.read_from(&mut source).unwrap() > 0 {
        while lines.next_line().is_some() {
            count += 1;
        }
    }
    lines.end_input();
    while lines.next_line().is_some() {
        count += 1;
    }
    assert_eq!(count, pushed.len());
    assert_eq!(lines.examined, stream.len() as u64);
}
