//! Time on a noisy machine: all subjects take turns, and what counts is the median over the turns of the ratio of
//! processor times within one turn.

use cpu_time::ThreadTime;

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
                let start = ThreadTime::now();
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
    fn index(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| *other == name)
    }

    /// The median over the turns of the time of `of` ÷ the time of `by`; NaN where one was not measured.
    pub fn ratio(&self, of: &str, by: &str) -> f64 {
        let (Some(of), Some(by)) = (self.index(of), self.index(by)) else { return f64::NAN };
        median(self.turns.iter().map(|row| row[of] / row[by]).collect())
    }

    /// The median of the seconds.
    pub fn seconds(&self, name: &str) -> f64 {
        let Some(index) = self.index(name) else { return f64::NAN };
        median(self.turns.iter().map(|row| row[index]).collect())
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
