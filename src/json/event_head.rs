//! [`EventHead`]: what is found by the way when a line that tells an event is proved.

use core::num::NonZeroU64;
use core::ops::Range;

use super::foreseen::Foreseen;

/// Where the parts of an event lie in the params of `session.event`, as the official runtime writes them:
/// `{"sessionId":"…","event":{"type":"…","seq":…,"time":…,"data":…`. No escapes in the strings, numbers of up to 15 digits.
///
/// [`Json`](super::Json) keeps it for the typed layer, which would have to pass over the text once more. It is a hint:
/// params without one read the same, in more time.
///
/// In one word, because a value is moved in words, and the processor waits where it reads one that was written in
/// parts. From the top: 32 bits of where the data ends, an offset in the params, 0 where nobody knows; the lengths in
/// bytes, quotes included, of session id (15 bits), type (8), seq (4) and time (4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventHead(NonZeroU64);

const SESSION_ID: &[u8] = br#"{"sessionId":"#;
const KIND: &[u8] = br#","event":{"type":"#;
const SEQ: &[u8] = br#","seq":"#;
const TIME: &[u8] = br#","time":"#;
const DATA: &[u8] = br#","data":"#;

impl EventHead {
    /// Passes over all of it up to the data; `None` where the text is another.
    #[inline(always)]
    pub(crate) fn pass(text: &mut Foreseen<'_>) -> Option<Self> {
        text.pass(SESSION_ID)?;
        let session_id = text.pass_string()?.len();
        text.pass(KIND)?;
        let kind = text.pass_string()?.len();
        text.pass(SEQ)?;
        let seq = text.pass_digits()?.len();
        text.pass(TIME)?;
        let time = text.pass_digits()?.len();
        text.pass(DATA)?;
        let fits = session_id < 1 << 15 && kind < 1 << 8;
        let word = (session_id as u64) << 16 | (kind as u64) << 8 | (seq as u64) << 4 | time as u64;
        NonZeroU64::new(word).filter(|_| fits).map(Self)
    }

    /// The same, with the data known to end here.
    #[inline(always)]
    pub(crate) fn with_data_to(self, end: usize) -> Option<Self> {
        let end = u32::try_from(end).ok()?;
        Some(Self(self.0 | u64::from(end) << 32))
    }

    pub(super) fn data_end(self) -> Option<usize> {
        let end = (self.0.get() >> 32) as usize;
        (end > 0).then_some(end)
    }

    pub(crate) fn session_id(self) -> Range<usize> {
        self.part(0, SESSION_ID, 16, 15)
    }

    pub(crate) fn kind(self) -> Range<usize> {
        self.part(self.session_id().end, KIND, 8, 8)
    }

    pub(crate) fn seq(self) -> Range<usize> {
        self.part(self.kind().end, SEQ, 4, 4)
    }

    pub(crate) fn time(self) -> Range<usize> {
        self.part(self.seq().end, TIME, 0, 4)
    }

    /// Where the data begins.
    pub(super) fn data(self) -> usize {
        self.time().end + DATA.len()
    }

    /// The part behind `end` and `name`, whose length is in these bits.
    #[inline(always)]
    fn part(self, end: usize, name: &[u8], shift: u32, bits: u32) -> Range<usize> {
        let start = end + name.len();
        start..start + (self.0.get() >> shift & ((1 << bits) - 1)) as usize
    }
}
