//! Times by size, in constant memory.

use std::time::Duration;

/// Times counted in classes: each microsecond below 256 µs, and 128 classes for each doubling above that, so that a
/// percentile is at most 0.8 % too high. The longest is exact.
#[derive(Default)]
pub(crate) struct Histogram {
    classes: Vec<u64>,
    count: u64,
    longest: u64,
}

/// Bits of a time that tell classes apart.
const BITS: u32 = 8;

impl Histogram {
    pub(crate) fn add(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let class = class(micros);
        if class >= self.classes.len() {
            self.classes.resize(class + 1, 0);
        }
        if let Some(class) = self.classes.get_mut(class) {
            *class += 1;
        }
        self.count += 1;
        self.longest = self.longest.max(micros);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The time that this part of all does not exceed; nothing where there is none.
    pub(crate) fn at(&self, part: f64) -> Option<Duration> {
        let rank = ((self.count as f64 * part).ceil() as u64).max(1);
        let mut passed = 0;
        let class = self.classes.iter().position(|count| {
            passed += count;
            passed >= rank
        })?;
        Some(Duration::from_micros(last_of(class).min(self.longest)))
    }
}

fn class(micros: u64) -> usize {
    let shift = (u64::BITS - micros.leading_zeros()).saturating_sub(BITS);
    ((u64::from(shift) << (BITS - 1)) + (micros >> shift)) as usize
}

/// The longest time of a class.
fn last_of(class: usize) -> u64 {
    let (half, class) = (1 << (BITS - 1), class as u64);
    let shift = (class / half).saturating_sub(1);
    let first = class - shift * half;
    (first << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_each_other_and_are_narrow() {
        let mut before = class(0);
        for micros in 1..200_000 {
            let class = class(micros);
            assert!(class == before || class == before + 1, "{micros}");
            assert!(micros <= last_of(class) && last_of(class) as f64 <= micros as f64 * 1.008, "{micros}");
            before = class;
        }
        assert_eq!(last_of(class(u64::MAX)), u64::MAX);
    }

    #[test]
    fn percentiles() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.at(0.5), None);
        (1..=200).rev().for_each(|micros| histogram.add(Duration::from_micros(micros)));
        let at = |part| histogram.at(part).map(|time| time.as_micros());
        assert_eq!([0.0, 0.5, 0.9, 0.99, 1.0].map(at), [1, 100, 180, 198, 200].map(Some));
        histogram.add(Duration::from_secs(5));
        assert_eq!(histogram.at(1.0), Some(Duration::from_secs(5)));
    }
}
