//! Time on a noisy machine: all subjects take turns, and what counts is the median over the turns of the ratio within
//! one turn. The clock is that of the wall, since waiting for the other process is what is measured.

use std::time::Instant;

/// One thing to measure: runs once over its input and returns something that depends on the work.
pub type Subject<'a> = (&'static str, Box<dyn FnMut() -> usize + 'a>);

/// The seconds of each subject in each turn.
pub struct Times {
    names: Vec<&'static str>,
    turns: Vec<Vec<f64>>,
}

/// Runs the subjects in turns; the first turn only warms up.
pub fn take_turns(turns: usize, subjects: &mut [Subject<'_>]) -> Times {
    let mut times = Times { names: subjects.iter().map(|subject| subject.0).collect(), turns: Vec::new() };
    for turn in 0..=turns {
        let row: Vec<f64> = subjects
            .iter_mut()
            .map(|(_, run)| {
                let start = Instant::now();
                std::hint::black_box(run());
                start.elapsed().as_secs_f64()
            })
            .collect();
        if turn > 0 {
            times.turns.push(row);
        }
    }
    times
}

impl Times {
    fn column(&self, name: &str) -> usize {
        self.names.iter().position(|other| *other == name).expect("a subject of this name")
    }

    /// The median over the turns of the time of `of` ÷ the time of `by`.
    pub fn ratio(&self, of: &str, by: &str) -> f64 {
        let (of, by) = (self.column(of), self.column(by));
        median(self.turns.iter().map(|row| row[of] / row[by]).collect())
    }

    /// The median of the seconds.
    pub fn seconds(&self, name: &str) -> f64 {
        let column = self.column(name);
        median(self.turns.iter().map(|row| row[column]).collect())
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
