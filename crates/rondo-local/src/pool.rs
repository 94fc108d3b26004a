//! The threads that a product is spread over, which wait between products instead of being started
//! for each: a token takes two hundred products, and some of them a tenth of a millisecond.
#![expect(
    unsafe_code,
    reason = "threads that outlive a job are lent what it borrows, and give it back before it ends"
)]

use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};

/// Looks for the next job, or for the end of one, before the processor is given up: about fifty
/// microseconds, in which the next product of a token has usually begun. On a busy machine another
/// thread, perhaps the one that is waited for, needs the processor meanwhile.
const SPINS_MAX: u32 = 2_500;
/// Threads at most, however many processors there are: a product has a few dozen pieces.
const THREADS_MAX: usize = 64;

/// Distributes pieces of work over all processors; each takes the next piece when it is free. Each
/// has a scratch value of its own.
pub(crate) fn on_all_processors<T: Send, Own: Default>(
    work: impl Iterator<Item = T> + Send,
    each: impl Fn(&mut Own, T) + Sync,
) {
    let work = Mutex::new(work);
    Pool::global().run(&|| {
        let next = || lock(&work).next();
        let mut own = Own::default();
        while let Some(piece) = next() {
            each(&mut own, piece);
        }
    });
}

/// Job that all threads do at once.
type Job<'a> = dyn Fn() + Sync + 'a;

struct Pool {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
    /// Held while a job runs: there is one at a time.
    turn: Mutex<()>,
}

#[derive(Default)]
struct Shared {
    /// The job of the current round, for threads that have not begun it; none once it is done.
    job: Mutex<Option<&'static Job<'static>>>,
    /// Goes up with each job.
    round: AtomicUsize,
    /// Threads that have begun the job and not finished it. Goes up only under the lock of `job`.
    running: AtomicUsize,
    panicked: AtomicBool,
}

impl Pool {
    fn global() -> &'static Self {
        static POOL: OnceLock<Pool> = OnceLock::new();
        POOL.get_or_init(|| Self::new(processors().min(THREADS_MAX).saturating_sub(1)))
    }

    /// Starts so many threads; those that the system refuses are done without.
    fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let threads = (0..threads).filter_map(|index| {
            let shared = Arc::clone(&shared);
            let name = format!("rondo-compute-{index}");
            let thread = thread::Builder::new().name(name);
            let started = thread.spawn(move || shared.work()).ok()?;
            Some(started.thread().clone())
        });
        Self {
            threads: threads.collect(),
            shared,
            turn: Mutex::new(()),
        }
    }

    /// Runs a job on this thread, and on all others that the system wakes before this one is done: a
    /// busy system may not for a while, and what they would have taken is done by then.
    ///
    /// # Panics
    /// When the job does, on any thread.
    fn run(&self, job: &Job<'_>) {
        let _turn = lock(&self.turn);
        // SAFETY: only the lifetime changes. Threads take the job from `shared.job`, counted under its
        // lock, between the next lines and the end of `until_done`, which empties it under that lock and
        // then waits for those that took it, also while this thread unwinds; `job` outlives both.
        let job_for_threads =
            unsafe { std::mem::transmute::<&Job<'_>, &'static Job<'static>>(job) };
        let shared = &*self.shared;
        shared.panicked.store(false, Ordering::Relaxed);
        *lock(&shared.job) = Some(job_for_threads);
        shared.round.fetch_add(1, Ordering::Release);
        let until_done = JobGuard(shared);
        self.threads.iter().for_each(Thread::unpark);
        job();
        drop(until_done);
        let panicked = shared.panicked.load(Ordering::Relaxed);
        assert!(!panicked, "a thread that computes panicked");
    }
}

/// At its end, lets no thread begin the job any more and waits until those that have are done.
struct JobGuard<'a>(&'a Shared);

impl Drop for JobGuard<'_> {
    fn drop(&mut self) {
        *lock(&self.0.job) = None;
        let mut spins = 0;
        while self.0.running.load(Ordering::Acquire) > 0 {
            if spins < SPINS_MAX {
                spins += 1;
                spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

impl Shared {
    /// Takes part in every job that it comes in time for, for as long as the process lives.
    fn work(&self) {
        let mut seen = 0;
        loop {
            seen = self.next_round(seen);
            if let Some(job) = self.begin() {
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                }
                self.running.fetch_sub(1, Ordering::Release);
            }
        }
    }

    fn begin(&self) -> Option<&'static Job<'static>> {
        let job = lock(&self.job);
        if job.is_some() {
            self.running.fetch_add(1, Ordering::Relaxed);
        }
        *job
    }

    fn next_round(&self, seen: usize) -> usize {
        let mut spins = 0;
        loop {
            let round = self.round.load(Ordering::Acquire);
            if round != seen {
                return round;
            }
            if spins < SPINS_MAX {
                spins += 1;
                spin_loop();
            } else {
                // An `unpark` since the last look makes this return at once.
                thread::park();
                spins = 0;
            }
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how many threads can compute at once: two that share a core share its vector units too.
fn processors() -> usize {
    let allowed = thread::available_parallelism().map_or(1, usize::from);
    cores().map_or(allowed, |cores| cores.clamp(1, allowed))
}

/// Returns how many cores the system has, if it can be asked.
fn cores() -> Option<usize> {
    #[cfg(target_os = "linux")]
    {
        let cpus = std::fs::read_dir("/sys/devices/system/cpu").ok()?;
        let siblings = cpus.filter_map(|cpu| {
            let list = cpu.ok()?.path().join("topology/thread_siblings_list");
            std::fs::read_to_string(list).ok()
        });
        let cores: std::collections::BTreeSet<String> = siblings.collect();
        (!cores.is_empty()).then_some(cores.len())
    }
    #[cfg(not(target_os = "linux"))]
    {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn every_piece_is_worked_on_once_whatever_the_number_of_threads() {
        for threads in [0, 1, 5] {
            let pool = Pool::new(threads);
            for pieces in [0, 1, 1_000] {
                let mut done = vec![0; pieces];
                let work = Mutex::new(done.iter_mut());
                pool.run(&|| {
                    let next = || lock(&work).next();
                    while let Some(piece) = next() {
                        *piece += 1;
                    }
                });
                assert!(done.iter().all(|times| *times == 1), "{threads}, {pieces}");
            }
        }
    }

    #[test]
    fn jobs_of_several_threads_take_turns() {
        let total = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        on_all_processors(0..10, |(), piece| {
                            total.fetch_add(piece, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(total.into_inner(), 4 * 50 * 45);
    }

    #[test]
    fn a_thread_that_does_not_come_is_not_waited_for_and_finds_nothing_later() {
        let pool = Pool {
            threads: vec![thread::current()],
            shared: Arc::default(),
            turn: Mutex::new(()),
        };
        let ran = AtomicUsize::new(0);
        pool.run(&|| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ran.into_inner(), 1);
        assert_eq!(pool.shared.next_round(0), 1);
        assert!(pool.shared.begin().is_none());
    }

    #[test]
    fn a_panic_on_any_thread_is_the_callers_and_the_pool_goes_on() {
        let pool = Pool::new(3);
        let caller = thread::current().id();
        for on_caller in [true, false] {
            let all = Barrier::new(4);
            let job = || {
                all.wait();
                assert!((thread::current().id() == caller) != on_caller, "as wanted");
            };
            assert!(catch_unwind(AssertUnwindSafe(|| pool.run(&job))).is_err());
            let ran = AtomicUsize::new(0);
            pool.run(&|| {
                all.wait();
                ran.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(ran.into_inner(), 4);
        }
    }
}
