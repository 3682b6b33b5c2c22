//! Threads that run jobs in lanes: the jobs of one lane one after the other, in order; lanes side by side.

use std::boxed::Box;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a thread without a job stays.
const IDLE: Duration = Duration::from_secs(10);

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Runs jobs by lanes. As many threads as lanes that have a job, up to a limit; a lane without jobs costs nothing.
#[derive(Clone)]
pub(super) struct Lanes<K>(Arc<Shared<K>>);

struct Shared<K> {
    state: Mutex<State<K>>,
    work: Condvar,
}

struct State<K> {
    /// The jobs to come of every lane that has one, also of those a thread is at work on.
    queues: BTreeMap<K, VecDeque<Job>>,
    /// Lanes that have a job and no thread at work on them, each once.
    ready: VecDeque<K>,
    /// Threads that wait for a lane.
    idle: usize,
    /// Threads that there are; at most `limit`.
    threads: usize,
    limit: usize,
    /// No thread waits any more.
    closed: bool,
}

impl<K: Ord + Clone + Send + 'static> Lanes<K> {
    pub(super) fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// With no more than so many threads, at least one; lanes that have none wait.
    pub(super) fn with_limit(limit: usize) -> Self {
        let state = State {
            queues: BTreeMap::new(),
            ready: VecDeque::new(),
            idle: 0,
            threads: 0,
            limit: limit.max(1),
            closed: false,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), work: Condvar::new() }))
    }

    /// Puts a job at the end of its lane. A panic in it ends the job, not its lane.
    ///
    /// # Errors
    /// No thread could be started, and there is none: here is the job again.
    pub(super) fn run(&self, lane: K, job: impl FnOnce() + Send + 'static) -> Result<(), Job> {
        let mut state = self.0.lock();
        if let Some(queue) = state.queues.get_mut(&lane) {
            queue.push_back(Box::new(job));
            return Ok(());
        }
        let waits = state.idle > state.ready.len();
        if !waits && state.threads < state.limit {
            // The new thread waits for the lock, and finds the job.
            let shared = self.0.clone();
            match thread::Builder::new().name("dsh-wire agent".into()).spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                // The threads there are will come to it.
                Err(_) if state.threads > 0 => {}
                Err(_) => return Err(Box::new(job)),
            }
        }
        state.queues.insert(lane.clone(), [Box::new(job) as Job].into());
        state.ready.push_back(lane);
        // Woken before, it would only wait for the lock.
        drop(state);
        if waits {
            self.0.work.notify_one();
        }
        Ok(())
    }

    /// Lets the threads go as they run out of jobs.
    pub(super) fn close(&self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

impl<K: Ord + Clone> Shared<K> {
    /// No code of others runs under the lock, so a panic leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(lane) = state.ready.pop_front() {
                let job = state.queues.get_mut(&lane).and_then(VecDeque::pop_front);
                drop(state);
                // The panic hook has told it; what it leaves behind is the job's own.
                let _ = catch_unwind(AssertUnwindSafe(|| job.map(|job| job())));
                state = self.lock();
                if state.queues.get(&lane).is_some_and(|queue| !queue.is_empty()) {
                    state.ready.push_back(lane);
                } else {
                    state.queues.remove(&lane);
                }
                continue;
            }
            if state.closed {
                state.threads -= 1;
                return;
            }
            state.idle += 1;
            let (woken, timeout) = self.work.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.ready.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn lanes_keep_their_order_and_do_not_wait_for_each_other() {
        let lanes = Lanes::new();
        let (sent, received) = mpsc::channel();
        let (go, gate) = mpsc::channel::<()>();
        let slow = sent.clone();
        lanes
            .run("slow", move || {
                gate.recv().unwrap();
                slow.send(("slow", 0)).unwrap();
            })
            .map_err(drop)
            .unwrap();
        for number in 0..100 {
            let sent = sent.clone();
            lanes.run("fast", move || sent.send(("fast", number)).unwrap()).map_err(drop).unwrap();
        }
        let fast: Vec<_> = received.iter().take(100).collect();
        assert!(fast.iter().copied().eq((0..100).map(|number| ("fast", number))));
        go.send(()).unwrap();
        assert_eq!(received.recv().unwrap(), ("slow", 0));
    }

    #[test]
    fn a_panic_ends_its_job_only() {
        let lanes = Lanes::new();
        let (sent, received) = mpsc::channel();
        lanes.run(0, || std::panic::resume_unwind(Box::new("quiet"))).map_err(drop).unwrap();
        lanes.run(0, move || sent.send(7).unwrap()).map_err(drop).unwrap();
        assert_eq!(received.recv().unwrap(), 7);
        lanes.close();
    }
}
