//! [`Classify`] by SIMD, for whatever the machine has: found out once, at run time.

use fearless_simd::{Level, Simd, SimdBase, SimdMask, dispatch, u8x64};

use super::blocks::{self, Classify, Escapes, Strings, Structure};

#[derive(Clone, Copy)]
struct Vectors<S>(S);

impl<S: Simd> Classify for Vectors<S> {
    #[inline(always)]
    fn strings(self, block: &[u8; 64]) -> Strings {
        let bytes = u8x64::load_array_ref(self.0, block);
        Strings {
            quote: bytes.simd_eq(b'"').to_bitmask(),
            backslash: bytes.simd_eq(b'\\').to_bitmask(),
            control: bytes.simd_lt(0x20).to_bitmask(),
        }
    }

    #[inline(always)]
    fn structure(self, block: &[u8; 64]) -> Structure {
        let bytes = u8x64::load_array_ref(self.0, block);
        // `[` and `{`, `]` and `}` differ in this bit only.
        let curly = bytes | 0x20;
        Structure {
            open: curly.simd_eq(b'{').to_bitmask(),
            close: curly.simd_eq(b'}').to_bitmask(),
            colon: bytes.simd_eq(b':').to_bitmask(),
            comma: bytes.simd_eq(b',').to_bitmask(),
            digit: (bytes - b'0').simd_lt(10).to_bitmask(),
            zero: bytes.simd_eq(b'0').to_bitmask(),
        }
    }

    #[inline(always)]
    fn usual_escapes(self, block: &[u8; 64]) -> u64 {
        let bytes = u8x64::load_array_ref(self.0, block);
        // Not put together from the bitmaps of `strings`: LLVM would move the bytes of those one by one.
        let quotes = bytes.simd_eq(b'"') | bytes.simd_eq(b'\\');
        (quotes | bytes.simd_eq(b'n') | bytes.simd_eq(b't')).to_bitmask()
    }

    #[inline(always)]
    fn escapes(self, block: &[u8; 64]) -> Escapes {
        let bytes = u8x64::load_array_ref(self.0, block);
        let u = bytes.simd_eq(b'u');
        let simple = bytes.simd_eq(b'"')
            | bytes.simd_eq(b'\\')
            | bytes.simd_eq(b'/')
            // `b` and `f` differ in this bit only.
            | (bytes | 4).simd_eq(b'f')
            | bytes.simd_eq(b'n')
            | bytes.simd_eq(b'r')
            | bytes.simd_eq(b't');
        let hex = (bytes - b'0').simd_lt(10) | ((bytes | 0x20) - b'a').simd_lt(6);
        Escapes { allowed: (simple | u).to_bitmask(), u: u.to_bitmask(), hex: hex.to_bitmask() }
    }
}

/// Whether `text` is one object or array from `start` on, to its end. It may say no where there is white space between
/// tokens.
pub(crate) fn is_container(text: &str, start: usize) -> bool {
    is_container_at(Level::new(), text, start)
}

/// The same of all of `text`, where that can be told faster than by the plain path; no where it cannot.
pub(crate) fn is_compact(text: &str) -> bool {
    is_container(text, 0)
}

pub(super) fn is_container_at(level: Level, text: &str, start: usize) -> bool {
    dispatch!(level, simd => blocks::compact(Vectors(simd), text.as_bytes(), start))
}

/// How many bytes [`utf8`] looks at at once.
pub(crate) const UTF8_BLOCK: usize = 64;

/// As [`core::str::from_utf8`], without a reason.
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    simdutf8::basic::from_utf8(bytes).ok()
}

/// The levels of this machine, the plainest first.
#[cfg(test)]
pub(super) fn levels() -> impl Iterator<Item = Level> {
    let best = Level::new();
    #[cfg(target_arch = "x86_64")]
    let others = [
        best.as_sse2().map(|simd| simd.level()),
        best.as_sse4_2().map(|simd| simd.level()),
        best.as_avx2().map(|simd| simd.level()),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    let others = [];
    others.into_iter().flatten().chain([best])
}
