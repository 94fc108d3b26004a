//! Bounds on concurrent requests to each provider, shared by all turns of the process.

use crate::providers::name_of_today;
use crate::target::ModelTarget;
use rondo_http::RequestLimit;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// The default bound of a provider: more than one user needs, and less than vendors refuse.
const REQUESTS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(31);

/// The bounds of all providers by name; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLimits(Arc<Mutex<BTreeMap<String, RequestLimit>>>);

impl RequestLimits {
    /// Returns the bound of a model's provider, which all models of the provider share.
    pub(crate) fn of(&self, target: &ModelTarget) -> RequestLimit {
        let max = target.provider.max_concurrent_requests;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = name_of_today(&target.provider_name).to_owned();
        let limit = known
            .entry(name)
            .or_insert_with(|| RequestLimit::new(max.unwrap_or(REQUESTS_MAX)));
        limit.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::Providers;

    fn target(spec: &str, max: Option<usize>) -> ModelTarget {
        let (provider_name, model) = spec.split_once('/').unwrap();
        let providers = Providers::load(&BTreeMap::new()).unwrap();
        let mut provider = providers.get(provider_name).unwrap().clone();
        if let Some(max) = max {
            provider.max_concurrent_requests = NonZeroUsize::new(max);
        }
        ModelTarget {
            provider_name: provider_name.to_owned(),
            provider,
            model: model.to_owned(),
            base_url: String::new(),
            facts: crate::models::ModelFacts::default(),
            weights: None,
        }
    }

    #[test]
    fn a_provider_has_what_is_set_for_it_or_the_usual() {
        let limits = RequestLimits::default();
        let max = |spec, max| limits.of(&target(spec, max)).max().get();
        assert_eq!(max("openai/a", None), 32);
        assert_eq!(max("groq/a", Some(3)), 3);
        assert_eq!(max("localhost/a", None), 4);
        assert_eq!(max("ollama/a", None), 4);
    }

    #[test]
    fn all_models_of_a_provider_share_its_bound_wherever_the_settings_go() {
        let limits = RequestLimits::default();
        limits.of(&target("openai/a", Some(1)));
        let again = limits.clone().of(&target("openai/b", Some(2)));
        assert_eq!(again.max().get(), 1, "the first one made it");
        limits.of(&target("localhost/a", Some(1)));
        let older = limits.of(&target("local/a", Some(2)));
        assert_eq!(older.max().get(), 1, "it is the same server");
    }
}
