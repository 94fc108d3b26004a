//! Offer to one session: tools up to a budget of bytes, and beyond it a tool that finds them.
//!
//! Tools that a session was offered once keep their place, and found ones are added at the end, so that a provider's
//! cache of the tools before it holds.

use super::catalog::{Catalog, Entry};
use super::search::search;
use super::tool::Callable;
use crate::running::RunningServer;
use async_trait::async_trait;
use rondo_core::notices::Notices;
use rondo_core::ports::{Tool, ToolInvocation, ToolScope, ToolSource};
use rondo_types::{ToolErrorCode, ToolKind, ToolOutcome, ToolOutput, ToolSpec};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The name of the tool that finds others.
const SEARCH: &str = "find_tools";
/// Tools that one search adds, unless it asks for fewer or more.
const FOUND: usize = 5;
/// Tools that one search may add.
const FOUND_MAX: usize = 10;
/// Tools that searches of one session may add.
const LOADED_MAX: usize = 100;
/// How long a search waits for servers that have not started yet.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How often it looks meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Names of servers that the tool's description lists.
const NAMES_MAX: usize = 40;
/// Characters of a description in a search's result.
const FOUND_CHARS_MAX: usize = 200;

/// Tools offered to one session.
pub(crate) struct SessionTools(Arc<Shared>);

struct Shared {
    catalog: Arc<Catalog>,
    running: Vec<Arc<RunningServer>>,
    bytes_max: usize,
    notices: Arc<dyn Notices>,
    offered: Mutex<Offers>,
    generation: AtomicU64,
}

/// Tools offered so far, by name.
#[derive(Default)]
struct Offers {
    /// In the order in which it was offered first.
    order: Vec<String>,
    /// Found by searches.
    loaded: HashSet<String>,
}

impl SessionTools {
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        running: Vec<Arc<RunningServer>>,
        bytes_max: usize,
        notices: Arc<dyn Notices>,
    ) -> Self {
        Self(Arc::new(Shared {
            catalog,
            running,
            bytes_max,
            notices,
            offered: Mutex::default(),
            generation: AtomicU64::new(0),
        }))
    }
}

impl ToolSource for SessionTools {
    fn tools(&self, _: &ToolScope) -> Vec<Arc<dyn Tool>> {
        let shared = &self.0;
        for note in shared.running.iter().flat_map(|it| it.take_notes()) {
            shared.notices.note(&note);
        }
        let entries = shared.catalog.entries();
        let (all, unsettled) = shared.catalog.names();
        let deferrable = entries.iter().filter(|it| !it.server.always_load);
        let bytes: usize = deferrable.map(|it| it.offered.bytes).sum();
        let is_over = bytes > shared.bytes_max;
        let mut offers = shared.offered();
        let was_offered: HashSet<String> = offers.order.iter().cloned().collect();
        if (is_over || !unsettled.is_empty()) && !was_offered.contains(SEARCH) {
            offers.order.push(SEARCH.to_owned());
        }
        for entry in &entries {
            let name = &entry.offered.spec.name;
            let is_meant = entry.server.always_load || !is_over || offers.loaded.contains(name);
            if is_meant && !was_offered.contains(name) {
                offers.order.push(name.clone());
            }
        }
        let tool = |name: &String| -> Option<Arc<dyn Tool>> {
            if name == SEARCH {
                return Some(Arc::new(FindTools {
                    shared: Arc::clone(shared),
                    servers: all.clone(),
                }));
            }
            let entry = entries.iter().find(|it| it.offered.spec.name == *name)?;
            let running = shared.running.iter();
            let running = running
                .into_iter()
                .find(|it| it.server().name == entry.server.name)?;
            let catalog = Arc::clone(&shared.catalog);
            Some(Arc::new(Callable::new(entry, Arc::clone(running), catalog)))
        };
        offers.order.iter().filter_map(tool).collect()
    }

    fn generation(&self) -> u64 {
        // Both only grow, so that their sum is another one when either is.
        self.0.catalog.generation() + self.0.generation.load(Ordering::Acquire)
    }
}

impl Shared {
    fn offered(&self) -> MutexGuard<'_, Offers> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entries that fit a query best. Waits for servers that have not started yet while nothing fits.
    async fn find(&self, query: &str, limit: usize) -> Vec<Entry> {
        let found = || {
            let entries = self.catalog.entries();
            let hits = search(&entries, query, limit);
            hits.into_iter()
                .filter_map(|at| entries.get(at).cloned())
                .collect::<Vec<_>>()
        };
        let waiting = async {
            loop {
                let hits = found();
                if !hits.is_empty() || self.catalog.names().1.is_empty() {
                    return hits;
                }
                sleep(LOOK_EVERY).await;
            }
        };
        match timeout(WAIT_MAX, waiting).await {
            Ok(hits) => hits,
            Err(_) => found(),
        }
    }

    /// Offers tools from the next step on. Returns those that there was room for.
    fn load(&self, hits: Vec<Entry>) -> Vec<Entry> {
        let mut offers = self.offered();
        let kept = hits.into_iter().filter(|hit| {
            let name = &hit.offered.spec.name;
            let is_offered = offers.order.contains(name);
            if !is_offered && offers.loaded.len() < LOADED_MAX {
                offers.loaded.insert(name.clone());
            }
            is_offered || offers.loaded.contains(name)
        });
        let kept = kept.collect();
        self.generation.fetch_add(1, Ordering::Release);
        kept
    }
}

/// The tool that finds others.
struct FindTools {
    shared: Arc<Shared>,
    servers: Vec<String>,
}

#[async_trait]
impl Tool for FindTools {
    fn spec(&self) -> ToolSpec {
        let mut names = self
            .servers
            .iter()
            .take(NAMES_MAX)
            .cloned()
            .collect::<Vec<_>>()
            .join(", ");
        if self.servers.len() > NAMES_MAX {
            names.push_str(", and more");
        }
        ToolSpec {
            name: SEARCH.to_owned(),
            description: format!(
                "Finds tools of connected servers by words for what they should do, and makes them available: \
                 call them by their names from your next reply on. Servers: {names}."
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words for what the tool should do"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": FOUND_MAX}
                },
                "required": ["query"],
                "additionalProperties": false
            }),
            ..ToolSpec::read_only(ToolKind::Search)
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let query = invocation.arguments.get("query").and_then(Value::as_str);
        let limit = invocation.arguments.get("limit").and_then(Value::as_u64);
        let limit = limit
            .and_then(|it| usize::try_from(it).ok())
            .unwrap_or(FOUND);
        let finding = self
            .shared
            .find(query.unwrap_or_default(), limit.clamp(1, FOUND_MAX));
        let hits = tokio::select! {
            biased;
            () = invocation.cancel.cancelled() => {
                return ToolOutcome::error(ToolErrorCode::Cancelled, "the call was cancelled");
            }
            hits = finding => hits,
        };
        let found: Vec<Value> = self.shared.load(hits).iter().map(described).collect();
        let mut value = json!({"tools": found});
        if let Some(fields) = value.as_object_mut() {
            let starting = self.shared.catalog.names().1;
            if !starting.is_empty() {
                fields.insert("servers_still_starting".to_owned(), json!(starting));
            }
            if found.is_empty() {
                fields.insert("note".to_owned(), json!("no tool fits; try other words"));
            }
        }
        ToolOutcome::Ok(ToolOutput {
            value,
            from_outside: true,
            ..ToolOutput::default()
        })
    }
}

fn described(entry: &Entry) -> Value {
    let spec = &entry.offered.spec;
    let description: String = spec.description.chars().take(FOUND_CHARS_MAX).collect();
    json!({"name": spec.name, "description": description})
}
