//! The scanner's fast path: 64 bytes at a time, as bitmaps, in the manner of simdjson.
//!
//! Each block of 64 bytes becomes a few words of 64 bits, one for each class of bytes: a bit of the word of quotes says
//! whether the byte in its place is a quote. The first byte has the lowest bit, so what stands *behind* a byte has the
//! next higher bit, and a shift by one to the left asks every byte at once what stands before it. Two more such
//! questions are answered for all bytes at once:
//!
//! - *Which bytes are inside a string?* Those with an odd number of quotes up to them: [`prefix_xor`].
//! - *Where does the string end that begins here?* Inside a string all bits are ones; a one that is added where it begins
//!   carries through them and comes out where it ends.
//!
//! So the grammar costs the same few dozen instructions for any 64 bytes. Looked at one by one are only brackets, and
//! scalars that are more than digits.
//!
//! The path knows one answer, "this is an object or array as compact as `JSON.stringify` writes it". For all else, white
//! space between tokens included, it gives up, and the plain path finds out what it is.
//!
//! A token may lie across two blocks. What a block has to know about the one before is in [`Scan`].

use super::scan::{self, Nesting, Outer};

/// Sorts the bytes of a block into classes.
pub(super) trait Classify: Copy {
    /// What ends or interrupts a string.
    fn strings(self, block: &[u8; 64]) -> Strings;
    /// What stands between strings.
    fn structure(self, block: &[u8; 64]) -> Structure;
    /// Quote, backslash, `n` and `t`, which are nearly all that stands behind a backslash.
    fn usual_escapes(self, block: &[u8; 64]) -> u64;
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

/// Whether `text` is one object or array from `start` on, to its end, without white space between its tokens.
#[inline(always)]
pub(super) fn compact<C: Classify>(classify: C, text: &[u8], start: usize) -> bool {
    let object = match text.get(start) {
        Some(b'{') => true,
        Some(b'[') => false,
        _ => return false,
    };
    let start = start + 1;
    let mut scan = Scan::behind_bracket(object);
    let mut outer = Outer::new();
    let mut at = start;
    loop {
        if scan.in_string != 0 {
            at = scan.pass_in_string(classify, text, at);
        }
        let Some(bytes) = whole_block(text, at) else { break };
        let block = Block { text, bytes, again: 0, valid: u64::MAX, at };
        if !scan.block(classify, block, &mut outer) {
            return false;
        }
        at += 64;
    }
    let left = text.len() - at;
    if left > 0 {
        let mut short = [0; 64];
        // The last block takes bytes from before, so that it is whole, and ignores them.
        let (bytes, again) = match text.last_chunk::<64>() {
            Some(bytes) => (bytes, 64 - left),
            None => {
                for (to, from) in short.iter_mut().zip(text) {
                    *to = *from;
                }
                (&short, start)
            }
        };
        let block = Block { text, bytes, again: again as u32, valid: (1 << left) - 1, at };
        if !scan.block(classify, block, &mut outer) {
            return false;
        }
    }
    scan.nesting.is_outside()
}

fn whole_block(text: &[u8], at: usize) -> Option<&[u8; 64]> {
    text.get(at..)?.first_chunk()
}

/// What one block leaves to the next.
///
/// A word that is named after a class of bytes is the whole word of the block before; only its highest bit, the last
/// byte, matters: [`behind`] shifts it in.
struct Scan {
    nesting: Nesting,
    /// All ones inside a string.
    in_string: u64,
    /// 1 where the string that is open is a member name.
    in_name: u64,
    escapes: OpenEscapes,
    /// Brackets that open, colons, commas: behind them a value or a name has to begin.
    lead: u64,
    /// Colons and commas: behind them nothing may close.
    separator: u64,
    /// Where an object wants a name: its opening bracket and its commas.
    item: u64,
    /// Where a value or a name has ended, or a scalar might have.
    end: u64,
    /// Bytes of numbers and literals.
    scalar: u64,
    /// The quotes that end a name.
    name_end: u64,
}

/// What the escapes of one block leave to the next.
#[derive(Clone, Copy)]
struct OpenEscapes {
    /// 1 where the first byte is escaped.
    escaped: u64,
    /// The leading bytes that have to be hex digits, for a `\u` in the block before.
    hex: u64,
}

impl OpenEscapes {
    /// Checks the escapes of a block; the bytes that stand behind a backslash and lose their own meaning by it. A backslash
    /// outside strings is no matter of this: no scalar has one.
    #[inline(always)]
    fn read<C: Classify>(&mut self, classify: C, bytes: &[u8; 64], again: u32, backslash: u64) -> Option<u64> {
        let escaped = find_escaped(backslash, &mut self.escaped);
        let usual = classify.usual_escapes(bytes) >> again;
        if escaped & !usual | self.hex == 0 {
            return Some(escaped);
        }
        let class = classify.escapes(bytes);
        let u = escaped & class.u >> again;
        let hex = u << 1 | u << 2 | u << 3 | u << 4 | self.hex;
        self.hex = u >> 63 | u >> 62 | u >> 61 | u >> 60;
        let wrong = escaped & !(class.allowed >> again) | hex & !(class.hex >> again);
        (wrong == 0).then_some(escaped)
    }
}

/// A block of the text and which part of it is to be read.
#[derive(Clone, Copy)]
struct Block<'t> {
    text: &'t [u8],
    bytes: &'t [u8; 64],
    /// So many bytes at its beginning have been read with the block before; the words are shifted so that the first
    /// byte to read has the lowest bit.
    again: u32,
    /// Ones for the bytes to read.
    valid: u64,
    /// Where the first byte to read lies in `text`.
    at: usize,
}

impl Scan {
    /// Behind the bracket of the outermost object, or array.
    fn behind_bracket(object: bool) -> Self {
        const LAST: u64 = 1 << 63;
        let mut nesting = Nesting::new();
        nesting.push(object, &mut Outer::new());
        Self {
            nesting,
            in_string: 0,
            in_name: 0,
            escapes: OpenEscapes { escaped: 0, hex: 0 },
            lead: LAST,
            separator: 0,
            item: if object { LAST } else { 0 },
            end: 0,
            scalar: 0,
            name_end: 0,
        }
    }

    /// Passes over the blocks that lie inside the string that is open altogether: nearly all of a long text, and little
    /// enough work for the machine to do it in its registers.
    #[inline(always)]
    fn pass_in_string<C: Classify>(&mut self, classify: C, text: &[u8], mut at: usize) -> usize {
        let mut escapes = self.escapes;
        while let Some(bytes) = whole_block(text, at) {
            let Strings { quote, backslash, control } = classify.strings(bytes);
            let mut next = escapes;
            let Some(escaped) = next.read(classify, bytes, 0, backslash) else { break };
            if control | quote & !escaped != 0 {
                break;
            }
            escapes = next;
            at += 64;
        }
        self.escapes = escapes;
        at
    }

    /// Reads one block. Whether it can be part of what is asked for.
    #[inline(always)]
    fn block<C: Classify>(&mut self, classify: C, block: Block<'_>, outer: &mut Outer) -> bool {
        let Block { again, valid, .. } = block;
        let strings = classify.strings(block.bytes);
        let mut quote = strings.quote >> again;
        let backslash = strings.backslash >> again;
        let control = strings.control >> again;
        if backslash | self.escapes.escaped | self.escapes.hex != 0 {
            let Some(escaped) = self.escapes.read(classify, block.bytes, again, backslash) else { return false };
            quote &= !escaped;
        }

        // From each opening quote up to its closing quote, which is not in it.
        let inside = prefix_xor(quote) ^ self.in_string;
        self.in_string = ((inside as i64) >> 63) as u64;
        let (string, string_end) = (quote & inside, quote & !inside);

        let structure = classify.structure(block.bytes);
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

        if scalar != 0 && !self.scalars(block, structure, scalar, scalar & !after_scalar) {
            return false;
        }
        let Some(object) = self.brackets(block, open, close, outer) else { return false };

        // What an object wants in turn: a name behind its bracket and its commas, and a colon behind the name. The sum
        // carries from where a name begins to where it ends, in the next block if need be.
        let item = (open | comma) & object;
        let after_item = behind(item, self.item);
        let (sum, in_name) = inside.overflowing_add(string & after_item | self.in_name);
        let name_end = sum & !inside;
        wrong |= (after_item & !(string | close) | colon ^ behind(name_end, self.name_end)) & valid;

        self.in_name = u64::from(in_name);
        self.lead = lead;
        self.separator = separator;
        self.item = item;
        self.end = end;
        self.scalar = scalar;
        self.name_end = name_end;
        wrong == 0
    }

    /// Checks the scalars of a block, of which `starts` are the first bytes. Whole numbers of digits only need no closer
    /// look, unless they have a leading zero.
    #[inline(always)]
    fn scalars(&self, block: Block<'_>, structure: Structure, scalar: u64, starts: u64) -> bool {
        // What began in an earlier block has been looked at there, to its end.
        let continued = if self.scalar >> 63 != 0 { scalar & !scalar.wrapping_add(1) } else { 0 };
        let other = scalar & !(structure.digit >> block.again) & !continued;
        let leading_zero = starts & structure.zero >> block.again & scalar >> 1;
        let mut look = if other | leading_zero != 0 {
            starts
        } else if scalar >> 63 != 0 && starts != 0 {
            // The last one may go on in the next block.
            1 << (63 - starts.leading_zeros())
        } else {
            0
        };
        while look != 0 {
            let end = scan::scalar(block.text, block.at + look.trailing_zeros() as usize);
            if !end.is_ok_and(|end| matches!(block.text.get(end), Some(b',' | b'}' | b']'))) {
                return false;
            }
            look &= look - 1;
        }
        true
    }

    /// Follows the brackets of a block. The bytes that belong to an object and not to an array: from its `{` on, and from
    /// behind a container in it on.
    #[inline(always)]
    fn brackets(&mut self, block: Block<'_>, open: u64, close: u64, outer: &mut Outer) -> Option<u64> {
        let Block { text, bytes, again, at, .. } = block;
        let mut object = 0;
        let mut from = 1u64;
        let mut brackets = open | close;
        loop {
            let bracket = lowest(brackets);
            // From the bracket before up to this one, or to the end.
            let region = bracket.wrapping_sub(from);
            object |= region & u64::from(self.nesting.in_object()).wrapping_neg();
            if bracket == 0 {
                return Some(object);
            }
            let index = bracket.trailing_zeros();
            // `{` and `}` have this bit, `[` and `]` do not.
            let curly = bytes.get((index + again) as usize & 63).is_some_and(|byte| byte & 0x20 != 0);
            if open & bracket != 0 {
                self.nesting.push(curly, outer);
            } else {
                if self.nesting.in_object() != curly {
                    return None;
                }
                self.nesting.pop(outer);
                if self.nesting.is_outside() && at + index as usize + 1 != text.len() {
                    return None;
                }
            }
            from = bracket;
            brackets &= brackets - 1;
        }
    }
}

fn lowest(bits: u64) -> u64 {
    bits & bits.wrapping_neg()
}

/// The bytes behind those of a class; `before` is the class in the block before, whose last byte may be one of them.
#[inline(always)]
fn behind(class: u64, before: u64) -> u64 {
    class << 1 | before >> 63
}

/// For each bit, whether the number of ones up to it, itself included, is odd: each step makes a bit the sum, without
/// carry, of twice as many.
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
    // The bits at odd places.
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    // Of each run of backslashes every second one is escaped. A run is followed bit by bit through a subtraction, which
    // borrows from its beginning to behind its end; what it leaves at odd and at even places tells those that escape
    // from those that are escaped. The method is simdjson's.
    let begin = backslash & !*first;
    let behind = begin << 1;
    let alternating = ((behind | ODD).wrapping_sub(begin)) ^ ODD;
    let escaped = alternating ^ (backslash | *first);
    *first = (alternating & backslash) >> 63;
    escaped
}

#[cfg(test)]
mod tests;
