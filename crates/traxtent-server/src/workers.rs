//! Threads for blocking requests: one for each outstanding request, up to a maximum.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

type Job = Box<dyn FnOnce() + Send>;

/// Threads that run jobs in order of arrival. If no thread is idle when a job arrives, another is
/// started, up to the maximum. Threads run until the workers are dropped.
pub(crate) struct Workers {
    shared: Arc<Shared>,
    name: &'static str,
    maximum: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    closed: bool,
}

impl Workers {
    /// Creates workers without threads. There will be at most `maximum` threads, all with this
    /// name.
    pub(crate) fn new(name: &'static str, maximum: usize) -> Workers {
        Workers {
            shared: Arc::default(),
            name,
            maximum,
            threads: Mutex::default(),
        }
    }

    /// Runs a job in an idle thread, in a new one, or, at the maximum, in the first that becomes
    /// idle.
    ///
    /// # Errors
    /// Returns an error if there is no thread and none can be started. The job is then not run.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        if state.idle <= state.jobs.len() {
            let mut threads = self.threads.lock();
            if threads.len() < self.maximum {
                let shared = Arc::clone(&self.shared);
                let started = thread::Builder::new()
                    .name(self.name.to_owned())
                    .spawn(move || shared.work());
                match started {
                    Ok(thread) => threads.push(thread),
                    Err(error) if threads.is_empty() => return Err(error),
                    // An existing thread will take the job.
                    Err(_) => {}
                }
            }
        }
        state.jobs.push_back(Box::new(job));
        drop(state);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl Drop for Workers {
    /// Waits until all jobs are done.
    fn drop(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.get_mut().drain(..) {
            // The panic of a job has already been reported.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("name", &self.name)
            .field("maximum", &self.maximum)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Runs jobs until the workers are dropped and no job is left.
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                self.changed.wait(&mut state);
                state.idle -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Do as many jobs run at the same time as there are threads, and does dropping the workers
    /// wait for all jobs?
    #[test]
    fn jobs_run_at_once_and_are_waited_for() {
        let workers = Workers::new("test", 8);
        let (together, done) = (Arc::new(Barrier::new(8)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..64 {
            let (together, done) = (Arc::clone(&together), Arc::clone(&done));
            workers
                .run(move || {
                    together.wait();
                    done.fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
        }
        drop(workers);
        assert_eq!(done.load(Ordering::Relaxed), 64);
    }
}
