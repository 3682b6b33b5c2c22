//! Time on a noisy machine: all subjects take turns, and what counts is the median over the turns of the ratio of
//! processor times within one turn.

use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};

/// One thing to measure: runs once over its input and returns something that depends on the work.
pub type Subject<'a> = (&'static str, Box<dyn FnMut() -> usize + 'a>);

/// The seconds of each subject in each turn.
pub struct Times {
    names: Vec<&'static str>,
    turns: Vec<Vec<f64>>,
}

/// Runs the subjects in turns, by the processor time of the calling thread: for subjects that do all their work on it.
/// The first turn only warms up.
pub fn take_turns(turns: usize, subjects: &mut [Subject<'_>]) -> Times {
    take_turns_by(turns, subjects, || {
        let start = ThreadTime::now();
        move || [start.elapsed(); 2]
    })
    .0
}

/// The same for subjects that work on several threads: by the wall clock, and by the processor time of the process.
/// The time of the calling thread would leave out what the others do.
pub fn take_turns_of_threads(turns: usize, subjects: &mut [Subject<'_>]) -> (Times, Times) {
    take_turns_by(turns, subjects, || {
        let (wall, process) = (Instant::now(), ProcessTime::now());
        move || [wall.elapsed(), process.elapsed()]
    })
}

fn take_turns_by<E: FnOnce() -> [Duration; 2]>(
    turns: usize,
    subjects: &mut [Subject<'_>],
    clock: impl Fn() -> E,
) -> (Times, Times) {
    let names: Vec<_> = subjects.iter().map(|subject| subject.0).collect();
    let mut times = [0, 1].map(|_| Times { names: names.clone(), turns: Vec::new() });
    for turn in 0..=turns {
        let mut rows = [Vec::new(), Vec::new()];
        for (_, run) in subjects.iter_mut() {
            let elapsed = clock();
            std::hint::black_box(run());
            for (row, time) in rows.iter_mut().zip(elapsed()) {
                row.push(time.as_secs_f64());
            }
        }
        if turn > 0 {
            times.iter_mut().zip(rows).for_each(|(times, row)| times.turns.push(row));
        }
    }
    times.into()
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
