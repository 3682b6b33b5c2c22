//! Time on a noisy machine: all subjects take turns, and what counts is the median over the turns of the ratio of
//! processor times within one turn.

use std::time::Instant;

use cpu_time::{ProcessTime, ThreadTime};

/// One thing to measure: runs once over its input and returns the seconds of processor time that it took.
pub type Subject<'a> = (&'static str, Box<dyn FnMut() -> f64 + 'a>);

/// A turn of a subject lasts at least so long.
const TURN: f64 = 0.02;

/// Measures a function of this thread, which returns something that depends on its work: the mean of as many passes as
/// fill a turn. Otherwise a subject of a few milliseconds would pay, in each of them, for the caches that slow subjects
/// have filled with their own. As long a time before does not count: a processor that has waited for another process
/// is slow at first, by half.
pub fn timed<'a>(mut run: impl FnMut() -> usize + 'a) -> Box<dyn FnMut() -> f64 + 'a> {
    Box::new(move || {
        passes_of_a_turn(&mut run);
        passes_of_a_turn(&mut run)
    })
}

fn passes_of_a_turn(run: &mut impl FnMut() -> usize) -> f64 {
    let start = ThreadTime::now();
    let mut passes = 0.0;
    loop {
        std::hint::black_box(run());
        passes += 1.0;
        let seconds = start.elapsed().as_secs_f64();
        if seconds >= TURN {
            return seconds / passes;
        }
    }
}

/// One pass, for [`take_turns_of_threads`] to measure; returns something that depends on the work.
pub type Pass<'a> = (&'static str, Box<dyn FnMut() -> usize + 'a>);

/// The seconds of each subject in each turn.
pub struct Times {
    names: Vec<&'static str>,
    turns: Vec<Vec<f64>>,
}

/// Runs the subjects in turns; the first turn only warms up. For subjects that do all their work on one thread, or know
/// the time of the others.
pub fn take_turns(turns: usize, subjects: &mut [Subject<'_>]) -> Times {
    let mut times = Times { names: subjects.iter().map(|subject| subject.0).collect(), turns: Vec::new() };
    for turn in 0..=turns {
        let row: Vec<f64> = subjects.iter_mut().map(|(_, run)| run()).collect();
        if turn > 0 {
            times.turns.push(row);
        }
    }
    times
}

/// The same for what works on several threads: by the wall clock, and by the processor time of the process. The time of
/// the calling thread would leave out what the others do.
pub fn take_turns_of_threads(turns: usize, passes: &mut [Pass<'_>]) -> (Times, Times) {
    let names: Vec<_> = passes.iter().map(|pass| pass.0).collect();
    let [mut walls, mut processes] = [0, 1].map(|_| Times { names: names.clone(), turns: Vec::new() });
    for turn in 0..=turns {
        let (mut wall_row, mut process_row) = (Vec::new(), Vec::new());
        for (_, run) in passes.iter_mut() {
            let (wall, process) = (Instant::now(), ProcessTime::now());
            std::hint::black_box(run());
            wall_row.push(wall.elapsed().as_secs_f64());
            process_row.push(process.elapsed().as_secs_f64());
        }
        if turn > 0 {
            walls.turns.push(wall_row);
            processes.turns.push(process_row);
        }
    }
    (walls, processes)
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
