//! SHA-256 (FIPS 180-4), by which attachments are named.

/// The hash, in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut state = constants::<8>(|prime| root(prime << 64, 2));
    let factors = constants::<64>(|prime| root(prime << 96, 3));
    // Padded to whole blocks: a 1, zeros, and the length in bits.
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        compress(&mut state, &factors, block);
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

fn compress(state: &mut [u32; 8], factors: &[u32; 64], block: &[u8]) {
    let mut words: Vec<u32> =
        block.chunks_exact(4).map(|bytes| bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte))).collect();
    let mut now = *state;
    for (round, factor) in factors.iter().enumerate() {
        let [a, b, c, d, e, f, g, h] = now;
        let word = words.get(round).copied().unwrap_or_default();
        let choice = e & f ^ !e & g;
        let majority = a & b ^ a & c ^ b & c;
        let sum = [6, 11, 25].into_iter().fold(0, |sum, by| sum ^ e.rotate_right(by));
        let one = h.wrapping_add(sum).wrapping_add(choice).wrapping_add(*factor).wrapping_add(word);
        let two = [2, 13, 22].into_iter().fold(0, |sum, by| sum ^ a.rotate_right(by)).wrapping_add(majority);
        now = [one.wrapping_add(two), a, b, c, d.wrapping_add(one), e, f, g];
        // The words behind the block's own, one a round.
        let at = |index: usize| words.get(round + index).copied().unwrap_or_default();
        let near = at(1).rotate_right(7) ^ at(1).rotate_right(18) ^ at(1) >> 3;
        let far = at(14).rotate_right(17) ^ at(14).rotate_right(19) ^ at(14) >> 10;
        let next = at(0).wrapping_add(near).wrapping_add(at(9)).wrapping_add(far);
        words.push(next);
    }
    state.iter_mut().zip(now).for_each(|(word, more)| *word = word.wrapping_add(more));
}

/// The first 32 bits behind the point of a root of each of the first primes.
fn constants<const N: usize>(root: impl Fn(u128) -> u128) -> [u32; N] {
    let mut primes = (2_u128..).filter(|number| (2..*number).all(|divisor| number % divisor != 0));
    std::array::from_fn(|_| u32::try_from(root(primes.next().unwrap_or_default()) & 0xffff_ffff).unwrap_or_default())
}

/// The root, rounded down.
fn root(of: u128, degree: u32) -> u128 {
    (0..42).rev().fold(0, |root: u128, bit| {
        let larger = root | 1 << bit;
        if larger.checked_pow(degree).is_some_and(|power| power <= of) { larger } else { root }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn as_in_the_standard() {
        for (text, hash) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(super::hex(text.as_bytes()), hash);
        }
        // The last two need a block more for their padding.
        for (length, hash) in [
            (55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"),
            (56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"),
            (64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"),
        ] {
            assert_eq!(super::hex(&vec![b'a'; length]), hash, "{length}");
        }
    }
}
