//! How many requests each provider takes at once, for all turns of the process together.

use crate::target::Choice;
use rondo_http::RequestLimit;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// The bound of a provider that says nothing else: more than one user needs, and less than what
/// vendors refuse.
const REQUESTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(31);

/// The bounds of all providers by name; clones are the same bounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLimits(Arc<Mutex<BTreeMap<String, RequestLimit>>>);

impl RequestLimits {
    /// Returns the bound of a model's provider, which all its models share.
    pub(crate) fn of(&self, choice: &Choice) -> RequestLimit {
        let max = choice.provider.max_concurrent_requests;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = choice.provider_name.clone();
        let limit = known
            .entry(name)
            .or_insert_with(|| RequestLimit::new(max.unwrap_or(REQUESTS_MAX)));
        limit.clone()
    }
}
