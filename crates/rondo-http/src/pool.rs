//! Connections that are kept for the next request.

use crate::connection::Connection;
use hyper::http::Uri;
use hyper::http::uri::{Authority, Scheme};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long an idle connection is kept for the next step.
const IDLE_MAX: Duration = Duration::from_secs(90);
/// The bound on idle connections kept to one host: as many as conversations may be held at once
/// without a new connection for each of their steps.
const IDLE_PER_HOST_MAX: usize = 1024;
/// How long what is kept too long, or was ended by its server, may stay besides.
const SWEEP: Duration = Duration::from_secs(5);

/// Destination of connections.
pub(crate) type Origin = (Scheme, Authority);

/// Returns the origin of a request's address.
pub(crate) fn origin(uri: &Uri) -> Option<Origin> {
    Some((uri.scheme()?.clone(), uri.authority()?.clone()))
}

/// Connections on which nothing is under way.
///
/// No task watches over each of them: its state is checked when it is wanted again, and one task closes those that
/// were not wanted for too long.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    /// A list, since there are few origins.
    kept: Vec<(Origin, Vec<IdleConnection>)>,
    /// Set if there is a task that closes them.
    is_swept: bool,
}

struct IdleConnection {
    connection: Box<Connection>,
    until: Instant,
}

impl Idle {
    /// Returns the connections to an origin.
    fn of(&mut self, origin: &Origin) -> Option<&mut Vec<IdleConnection>> {
        let mut all = self.kept.iter_mut();
        all.find(|(here, _)| here == origin).map(|(_, kept)| kept)
    }
}

impl Pool {
    /// Takes a connection that can be used, the one that was used last.
    pub(crate) fn take(&self, origin: &Origin) -> Option<Box<Connection>> {
        let now = Instant::now();
        loop {
            let kept = self.idle().of(origin)?.pop()?;
            if kept.until > now && kept.connection.is_quiet() {
                return Some(kept.connection);
            }
        }
    }

    /// Keeps a connection, unless there are enough.
    pub(crate) fn put(self: &Arc<Self>, origin: Origin, connection: Box<Connection>) {
        let until = Instant::now() + IDLE_MAX;
        let mut idle = self.idle();
        let kept = IdleConnection { connection, until };
        match idle.of(&origin) {
            Some(all) if all.len() < IDLE_PER_HOST_MAX => all.push(kept),
            Some(_) => {}
            None => idle.kept.push((origin, vec![kept])),
        }
        if !std::mem::replace(&mut idle.is_swept, true) {
            drop(idle);
            let sweeper = Sweeper(Arc::downgrade(self));
            tokio::spawn(sweeper.run());
        }
    }

    /// Closes what was kept for too long or cannot be used again. Returns whether anything is left.
    fn sweep(&self) -> bool {
        let now = Instant::now();
        let mut idle = self.idle();
        let mut over = Vec::new();
        idle.kept.retain_mut(|(_, kept)| {
            over.extend(kept.extract_if(.., |it| it.until <= now || !it.connection.is_quiet()));
            !kept.is_empty()
        });
        let is_left = !idle.kept.is_empty();
        idle.is_swept = is_left;
        drop(idle);
        // Closing them takes system calls, for which no other task has to wait.
        drop(over);
        is_left
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections, as long as there are any.
struct Sweeper(Weak<Pool>);

impl Sweeper {
    async fn run(self) {
        loop {
            sleep(SWEEP).await;
            if !self.0.upgrade().is_some_and(|pool| pool.sweep()) {
                return;
            }
        }
    }
}

impl Drop for Sweeper {
    /// Also if the runtime ends that it runs on: another one may use the pool.
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.idle().is_swept = false;
        }
    }
}
