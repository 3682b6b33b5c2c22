//! The scanner's fast path: 64 bytes at a time, as bitmaps.
//!
//! Each block of 64 bytes becomes a few words in which bit `i` says something about byte `i`, the first byte in the
//! lowest bit. The grammar is then checked by word operations for all 64 bytes at once: which byte may follow which
//! is a shift by one, and "the string that began here ends there" is the carry of an addition. Only brackets,
//! members of the outermost object, and scalars that are more than digits are looked at one by one.
//!
//! The path knows one answer, "this is an object as compact as `JSON.stringify` writes it, and here are its members".
//! For all else, white space between tokens included, it gives up, and the plain path finds out what it is.

use core::ops::Range;

use super::scan::{self, Nesting, Outer};

/// Sorts the bytes of a block into classes.
pub(super) trait Classify: Copy {
    /// What ends or interrupts a string.
    fn strings(self, block: &[u8; 64]) -> Strings;
    /// What stands between strings.
    fn structure(self, block: &[u8; 64]) -> Structure;
    /// What may stand behind a backslash.
    fn escapes(self, block: &[u8; 64]) -> Escapes;
}

#[derive(Clone, Copy)]
pub(super) struct Strings {
    pub(super) quote: u64,
    pub(super) backslash: u64,
    /// Below 0x20.
    pub(super) control: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Structure {
    /// `{` or `[`.
    pub(super) open: u64,
    /// `}` or `]`.
    pub(super) close: u64,
    pub(super) colon: u64,
    pub(super) comma: u64,
    pub(super) digit: u64,
    pub(super) zero: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Escapes {
    /// One of `"\/bfnrtu`.
    pub(super) allowed: u64,
    pub(super) u: u64,
    pub(super) hex: u64,
}

/// Told of the members of the outermost object: name, quotes included, and value.
pub(super) type Member<'m> = dyn FnMut(Range<usize>, Range<usize>) + 'm;

/// Whether `text` is one object without white space between its tokens; the range is that of an item at
/// depth 3, the longest or nearly so, from the bracket or comma before it to the one behind it; it may be empty.
/// Calls `member` as [`validate`](super::scan::validate) does, also before the answer turns out to be no, and may pass
/// over a member `jsonrpc`.
#[inline(always)]
pub(super) fn compact_object<C: Classify>(classify: C, text: &[u8], member: &mut Member<'_>) -> Option<Range<usize>> {
    // Nearly all lines of this protocol begin in one of these ways; the scan begins behind the colon.
    let (name, start) = if text.starts_with(br#"{"jsonrpc":"2.0","method":"#) {
        (17..25, 26)
    } else if text.starts_with(br#"{"jsonrpc":"2.0","id":"#) {
        (17..21, 22)
    } else if text.starts_with(b"{") {
        (0..0, 1)
    } else {
        return None;
    };
    let mut members = Members { member, name_start: start, name, value: start, item: 0, long: 0..0 };
    let mut scan = Scan::after_prefix(start == 1);
    let mut outer = Outer::new();
    let mut at = start;
    while let Some(block) = text.get(at..).and_then(|rest| rest.first_chunk::<64>()) {
        if !scan.block(classify, block, 0, u64::MAX, text, at, &mut outer, &mut members) {
            return None;
        }
        at += 64;
    }
    let left = text.len() - at;
    if left > 0 {
        let mut short = [0; 64];
        // The last block takes bytes from before, so that it is whole, and ignores them.
        let (block, again) = match text.last_chunk::<64>() {
            Some(block) => (block, 64 - left),
            None => {
                for (to, from) in short.iter_mut().zip(text) {
                    *to = *from;
                }
                (&short, start)
            }
        };
        if !scan.block(classify, block, again as u32, (1 << left) - 1, text, at, &mut outer, &mut members) {
            return None;
        }
    }
    scan.nesting.is_outside().then_some(members.long)
}

/// The members of the outermost object, as they come. Out of the way: they are few.
struct Members<'m, 'f> {
    member: &'m mut Member<'f>,
    /// Where the name of the next member would begin.
    name_start: usize,
    /// The name of the member being read; 0..0 where there is none.
    name: Range<usize>,
    /// Where its value begins.
    value: usize,
    /// The bracket or comma before the current item at depth 3.
    item: usize,
    /// The longest item at depth 3 so far, of those that go over more than one block or hold a container.
    long: Range<usize>,
}

impl Members<'_, '_> {
    /// Takes the colons and commas of the outermost object, in a block at `at`.
    #[inline(never)]
    fn separators(&mut self, at: usize, colon: u64, comma: u64) {
        let mut separators = colon | comma;
        while separators != 0 {
            let index = at + separators.trailing_zeros() as usize;
            if colon & lowest(separators) != 0 {
                self.name = self.name_start..index;
                self.value = index + 1;
            } else {
                self.value_end(index);
                self.name_start = index + 1;
            }
            separators &= separators - 1;
        }
    }

    /// Takes the commas of a container at depth 3, in a block at `at`, and its closing bracket.
    #[inline(never)]
    fn items(&mut self, at: usize, separators: u64) {
        let first = at + separators.trailing_zeros() as usize;
        if first - self.item > self.long.len() {
            self.long = self.item..first;
        }
        self.item = at + (63 - separators.leading_zeros()) as usize;
    }

    #[inline(never)]
    fn value_end(&mut self, at: usize) {
        if self.name.end > 0 {
            (self.member)(self.name.clone(), self.value..at);
            self.name = 0..0;
        }
    }
}

/// What one block leaves to the next. A word that is named after a class of bytes is that of the block before, so
/// that [`behind`] can shift its last bit in.
struct Scan {
    nesting: Nesting,
    /// All ones inside a string.
    in_string: u64,
    /// 1 where the string that is open is a member name.
    in_name: u64,
    /// 1 where the first byte is escaped.
    escaped: u64,
    /// The leading bytes that have to be hex digits.
    hex: u64,
    /// Where a value has to follow: brackets that open, colons, commas.
    lead: u64,
    /// Colons and commas.
    separator: u64,
    /// Where an object wants a name: its opening bracket and its commas.
    item: u64,
    /// Where a value or a name has ended.
    end: u64,
    /// Bytes of numbers and literals.
    scalar: u64,
    /// The quotes that end a name.
    name_end: u64,
}

impl Nesting {
    /// Whether the current container is the third.
    #[inline(always)]
    fn is_third(self, outer: &Outer) -> bool {
        self.bits >> 3 == 1 && outer.is_empty()
    }
}

impl Scan {
    /// Behind the `{` of the outermost object, or else behind the colon of a member of it.
    fn after_prefix(bracket: bool) -> Self {
        const LAST: u64 = 1 << 63;
        let mut nesting = Nesting::new();
        nesting.push(true, &mut Outer::new());
        Self {
            nesting,
            in_string: 0,
            in_name: 0,
            escaped: 0,
            hex: 0,
            lead: LAST,
            separator: if bracket { 0 } else { LAST },
            item: if bracket { LAST } else { 0 },
            end: 0,
            scalar: 0,
            name_end: 0,
        }
    }

    /// Reads the part of one block that has not been read: the bytes from the one at `again` on, which lies at `at`
    /// in `text`; as many as `valid` has ones. Whether it can be what is asked for.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "in a struct, none of this would stay in registers")]
    fn block<C: Classify>(
        &mut self,
        classify: C,
        block: &[u8; 64],
        again: u32,
        valid: u64,
        text: &[u8],
        at: usize,
        outer: &mut Outer,
        members: &mut Members<'_, '_>,
    ) -> bool {
        let strings = classify.strings(block);
        let (mut quote, backslash) = (strings.quote >> again, strings.backslash >> again);
        let control = strings.control >> again;
        if backslash | self.escaped | self.hex != 0 {
            let escaped = find_escaped(backslash, &mut self.escaped);
            quote &= !escaped;
            let escapes = classify.escapes(block);
            let u = escaped & escapes.u >> again;
            let hex = u << 1 | u << 2 | u << 3 | u << 4 | self.hex;
            if escaped & !(escapes.allowed >> again) | hex & !(escapes.hex >> again) != 0 {
                return false;
            }
            self.hex = u >> 63 | u >> 62 | u >> 61 | u >> 60;
        }
        if quote == 0 && self.in_string != 0 {
            return control & valid == 0;
        }

        // From each opening quote up to its closing quote, which is not in it.
        let inside = prefix_xor(quote) ^ self.in_string;
        self.in_string = ((inside as i64) >> 63) as u64;
        let (string, string_end) = (quote & inside, quote & !inside);

        let structure = classify.structure(block);
        let outside = !inside & valid;
        let open = structure.open >> again & outside;
        let close = structure.close >> again & outside;
        let colon = structure.colon >> again & outside;
        let comma = structure.comma >> again & outside;
        let separator = colon | comma;
        let lead = open | separator;
        let scalar = outside & !(lead | close | string_end);
        let end = string_end | close | scalar;

        // Which byte may follow which.
        let after_lead = behind(lead, self.lead);
        let after_scalar = behind(scalar, self.scalar);
        let mut wrong = control & inside
            | (open | string) & !after_lead
            | scalar & !(after_lead | after_scalar)
            | comma & !behind(end, self.end)
            | close & behind(separator, self.separator);

        if scalar != 0 {
            let starts = scalar & !after_scalar;
            // What began in an earlier block has been looked at there, to its end.
            let continued = if self.scalar >> 63 != 0 { scalar & !scalar.wrapping_add(1) } else { 0 };
            let leading_zero = starts & structure.zero >> again & scalar >> 1;
            let mut look = if scalar & !(structure.digit >> again) & !continued | leading_zero != 0 {
                starts
            } else if scalar >> 63 != 0 && starts != 0 {
                // The last one may go on in the next block.
                1 << (63 - starts.leading_zeros())
            } else {
                0
            };
            while look != 0 {
                let end = scan::scalar(text, at + look.trailing_zeros() as usize);
                if !end.is_ok_and(|end| matches!(text.get(end), Some(b',' | b'}' | b']'))) {
                    return false;
                }
                look &= look - 1;
            }
        }

        // The bytes that belong to an object: from its `{` on, and from behind a nested value on.
        let mut object = 0;
        let mut from = 1u64;
        let mut brackets = open | close;
        loop {
            let bracket = lowest(brackets);
            // From the bracket before up to this one, or to the end.
            let region = bracket.wrapping_sub(from);
            object |= region & u64::from(self.nesting.in_object()).wrapping_neg();
            if separator & region != 0 && self.nesting.in_outermost_object(outer) {
                members.separators(at, colon & region, comma & region);
            }
            if (comma & region | close & bracket) != 0 && self.nesting.is_third(outer) {
                members.items(at, comma & region | close & bracket);
            }
            if bracket == 0 {
                break;
            }
            let index = bracket.trailing_zeros();
            // `{` and `}` have this bit, `[` and `]` do not.
            let curly = block.get((index + again) as usize & 63).is_some_and(|byte| byte & 0x20 != 0);
            if open & bracket != 0 {
                self.nesting.push(curly, outer);
                if self.nesting.is_third(outer) {
                    members.item = at + index as usize;
                }
            } else {
                if self.nesting.in_object() != curly {
                    return false;
                }
                self.nesting.pop(outer);
                if self.nesting.is_outside() {
                    let end = at + index as usize;
                    if end + 1 != text.len() {
                        return false;
                    }
                    members.value_end(end);
                }
            }
            from = bracket;
            brackets &= brackets - 1;
        }

        // What an object wants in turn: a name behind its bracket and its commas, a colon behind the name. A one that
        // is added where a name begins carries to where it ends.
        let item = (open | comma) & object;
        let after_item = behind(item, self.item);
        let (sum, carry) = inside.overflowing_add(string & after_item | self.in_name);
        let name_end = sum & !inside;
        wrong |= (after_item & !(string | close) | colon ^ behind(name_end, self.name_end)) & valid;

        self.in_name = u64::from(carry);
        self.lead = lead;
        self.separator = separator;
        self.item = item;
        self.end = end;
        self.scalar = scalar;
        self.name_end = name_end;
        wrong == 0
    }
}

fn lowest(bits: u64) -> u64 {
    bits & bits.wrapping_neg()
}

/// The bytes behind those of a class; `before` is the class in the block before.
#[inline(always)]
fn behind(class: u64, before: u64) -> u64 {
    class << 1 | before >> 63
}

/// For each bit, whether the number of ones up to it, itself included, is odd.
#[inline(always)]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// The bytes that stand behind a backslash which is not itself escaped. `first` says that the first byte is one, and
/// is left for the next block.
#[inline(always)]
fn find_escaped(backslash: u64, first: &mut u64) -> u64 {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    // Of each run of backslashes every second one escapes. A subtraction borrows through the run, which leaves
    // the bits at even and at odd places told apart by where the run began.
    let begin = backslash & !*first;
    let behind = begin << 1;
    let alternating = ((behind | ODD).wrapping_sub(begin)) ^ ODD;
    let escaped = alternating ^ (backslash | *first);
    *first = (alternating & backslash) >> 63;
    escaped
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::super::{Json, LongItem, fast};
    use super::*;

    /// Byte by byte, as a reference.
    #[derive(Clone, Copy)]
    struct OneByOne;

    impl OneByOne {
        fn bits(block: &[u8; 64], class: impl Fn(u8) -> bool) -> u64 {
            block.iter().rev().fold(0, |bits, byte| bits << 1 | u64::from(class(*byte)))
        }
    }

    impl Classify for OneByOne {
        fn strings(self, block: &[u8; 64]) -> Strings {
            Strings {
                quote: Self::bits(block, |byte| byte == b'"'),
                backslash: Self::bits(block, |byte| byte == b'\\'),
                control: Self::bits(block, |byte| byte < 0x20),
            }
        }

        fn structure(self, block: &[u8; 64]) -> Structure {
            Structure {
                open: Self::bits(block, |byte| matches!(byte, b'{' | b'[')),
                close: Self::bits(block, |byte| matches!(byte, b'}' | b']')),
                colon: Self::bits(block, |byte| byte == b':'),
                comma: Self::bits(block, |byte| byte == b','),
                digit: Self::bits(block, |byte| byte.is_ascii_digit()),
                zero: Self::bits(block, |byte| byte == b'0'),
            }
        }

        fn escapes(self, block: &[u8; 64]) -> Escapes {
            Escapes {
                allowed: Self::bits(block, |byte| br#""\/bfnrtu"#.contains(&byte)),
                u: Self::bits(block, |byte| byte == b'u'),
                hex: Self::bits(block, |byte| byte.is_ascii_hexdigit()),
            }
        }
    }

    type Members = Vec<(Range<usize>, Range<usize>)>;

    /// Whether `text` is an object, by the plain path, and whether it has white space between its tokens.
    fn plain(text: &str) -> Option<(Members, bool)> {
        let mut members = Vec::new();
        scan::validate(text, |name, value| members.push((name, value)))
            .ok()
            .filter(|_| text.trim_start().starts_with('{'))?;
        let (mut inside, mut escaped, mut white) = (false, false, false);
        for byte in text.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => inside = !inside,
                b' ' | b'\t' | b'\r' | b'\n' if !inside => white = true,
                _ => {}
            }
        }
        Some((members, white))
    }

    /// A walk that knows where a long item lies finds what another does.
    #[track_caller]
    fn check_long_item(text: &str, members: &Members, long: Range<usize>) {
        let walk = |json: Json<'_>| {
            let mut found = Vec::new();
            let mut outer = json.members();
            while let Some(name) = outer.next_name() {
                let inner =
                    outer.walk_value(|inner| inner.map(|(name, value)| (name, value.get().len())).collect::<Vec<_>>());
                let value = if inner.is_none() { Some(outer.take_value()) } else { None };
                found.push((name, inner, value));
            }
            format!("{found:?}")
        };
        for (_, value) in members {
            let json = Json::from_proved(&text[value.clone()]);
            let item = LongItem::new(value.start, long.start, long.end);
            assert_eq!(walk(json), walk(json.with_long_item(item)), "{text}: {long:?}");
        }
    }

    #[track_caller]
    fn check(text: &str) {
        let mut expected = plain(text).filter(|(_, white)| !white).map(|(members, _)| members);
        if [r#"{"jsonrpc":"2.0","method":"#, r#"{"jsonrpc":"2.0","id":"#].iter().any(|head| text.starts_with(head)) {
            // Passed over.
            expected.iter_mut().for_each(|members| {
                members.remove(0);
            });
        }
        let mut members = Vec::new();
        let found = compact_object(OneByOne, text.as_bytes(), &mut |name, value| members.push((name, value)));
        assert_eq!(found.map(|_| members), expected, "{text}");
        for level in fast::levels() {
            let mut members = Vec::new();
            let found = fast::compact_object_at(level, text, &mut |name, value| members.push((name, value)));
            if let Some(long) = &found {
                check_long_item(text, &members, long.clone());
            }
            assert_eq!(found.map(|_| members), expected, "{level:?}: {text}");
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % n
        }
    }

    fn string(random: &mut Random, out: &mut String) {
        out.push('"');
        for _ in 0..random.below(12) {
            out.push_str(match random.below(16) {
                0 => "\\\"",
                1 => "\\\\",
                2 => "\\u00e9",
                3 => "\\n",
                4 => "你好",
                5 => "{[]}:,",
                6 => " ",
                7 => {
                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                }
                _ => "x",
            });
        }
        out.push('"');
    }

    fn value(random: &mut Random, depth: u64, out: &mut String) {
        match random.below(if depth > 5 { 6 } else { 9 }) {
            0 | 1 => string(random, out),
            2 => out.push_str(["true", "false", "null"][random.below(3) as usize]),
            3 => out.push_str(["0", "-0.5e+7", "-1", "1E2", "0.25"][random.below(5) as usize]),
            4 | 5 => {
                let size = random.below(60);
                out.push_str(&format!("{}", random.below(1 << size)));
            }
            6 => {
                out.push('[');
                for index in 0..random.below(4) {
                    out.push_str(if index > 0 { "," } else { "" });
                    value(random, depth + 1, out);
                }
                out.push(']');
            }
            _ => object(random, depth + 1, out),
        }
    }

    fn object(random: &mut Random, depth: u64, out: &mut String) {
        out.push('{');
        for index in 0..random.below(5) {
            out.push_str(if index > 0 { "," } else { "" });
            string(random, out);
            out.push(':');
            value(random, depth, out);
        }
        out.push('}');
    }

    #[test]
    fn it_agrees_with_the_plain_path_on_generated_texts_and_on_broken_ones() {
        let mut random = Random(0x0dd5_eed5);
        for round in 0..1500 {
            let mut text = String::new();
            match round % 4 {
                0 => text.push_str(r#"{"jsonrpc":"2.0","method":"x","params":"#),
                1 => text.push_str(r#"{"jsonrpc":"2.0","id":7,"result":"#),
                2 => text.push_str(r#"{"params":"#),
                _ => {}
            }
            object(&mut random, 0, &mut text);
            if round % 4 != 3 {
                text.push('}');
            }
            check(&text);
            for _ in 0..8 {
                let mut broken: Vec<char> = text.chars().collect();
                for _ in 0..=random.below(2) {
                    let at = random.below(broken.len() as u64) as usize;
                    let other =
                        ['{', '}', '[', ']', ':', ',', '"', '\\', 'u', '0', '1', '-', 'e', '.', 't', ' ', '\t', 'é'];
                    let other = other[random.below(other.len() as u64) as usize];
                    match random.below(4) {
                        0 => broken.insert(at, other),
                        1 if broken.len() > 1 => drop(broken.remove(at)),
                        2 => broken.truncate(at + 1),
                        _ => broken[at] = other,
                    }
                }
                check(&broken.into_iter().collect::<String>());
            }
        }
    }

    /// Every short text over the bytes that matter, at the end of a block and across it.
    #[test]
    fn it_agrees_with_the_plain_path_on_every_short_text_at_the_edge_of_a_block() {
        const ALPHABET: &[u8; 11] = br#"{}[]:,"\0-n"#;
        for len in 0..=4 {
            for edge in [0, 62] {
                let head = if edge == 0 { String::from("{") } else { format!(r#"{{"{}":"#, "a".repeat(edge - 4)) };
                for mut number in 0..ALPHABET.len().pow(len) {
                    let mut text = head.clone();
                    for _ in 0..len {
                        text.push(ALPHABET[number % ALPHABET.len()].into());
                        number /= ALPHABET.len();
                    }
                    check(&text);
                    text.push('}');
                    check(&text);
                }
            }
        }
    }

    /// A scalar, an escape and a string end at every place of the first blocks.
    #[test]
    fn it_agrees_with_the_plain_path_at_every_alignment() {
        for len in 0..200 {
            let pad = "p".repeat(len);
            for tail in [
                r#"{"v":-12.5e3}"#,
                r#"{"v":12345678901234567890}"#,
                r#"{"v":01}"#,
                r#"{"v":true}"#,
                r#"{"v":tru}"#,
                r#"{"v":"\u00fF\\\""}"#,
                r#"{"v":"\u00g0"}"#,
                r#"{"v":"\x"}"#,
                "{\"v\":\"\u{1}\"}",
                r#"{"v":[[],{},""]}"#,
                r#"{"v":[1,2,3]}"#,
                r#"{"v":1"w":2}"#,
                r#"{"v":"a":"b"}"#,
                r#"{"v"}"#,
                r#"{"v":1,}"#,
                "{}",
                "{}}",
                "{},",
                "{} ",
                r#"{"v":é}"#,
                r#"{"v":"\"#,
                r#"{"v":"#,
                "",
            ] {
                check(&format!(r#"{{"{pad}":0,"o":{tail}}}"#));
                check(&format!(r#"{{"o":[{{"{pad}":"{pad}"}},{tail},"{pad}"]}}"#));
                check(&format!(r#"{{"jsonrpc":"2.0","id":"{pad}","result":{tail}}}"#));
            }
            let deep = format!("{}{}{}", "[".repeat(len), r#"{"a":["#.repeat(len), "]}".repeat(len));
            check(&format!(r#"{{"d":{deep}{}}}"#, "]".repeat(len)));
            check(&format!(r#"{{"d":{deep}{}}}"#, "]".repeat(len + 1)));
            check(&format!(r#"{{"d":{deep}}}"#));
        }
    }
}
