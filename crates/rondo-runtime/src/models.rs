//! Facts about models (context, price, abilities): the tables in `data/models`, one for each provider, which are
//! compiled in, and the `[models]` of the configuration, which override them.
//!
//! # The tables
//! Models by name. A key that ends in `*` speaks for every longer name; an exact key, and then the longest prefix, wins.
//! Prices are US dollars for a million tokens as the providers list them for their standard tier; they change, and the
//! configuration overrides them. A model that is not listed is let through: its limits and price are simply unknown.

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use crate::providers::other_name;
use rondo_types::{NanoUsd, Price};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The tables by provider. A turn reads that of its own: all of them together take longer than the rest of its settings.
const TABLES: [(&str, &str); 9] = [
    ("anthropic", include_str!("../data/models/anthropic.toml")),
    ("deepseek", include_str!("../data/models/deepseek.toml")),
    ("gemini", include_str!("../data/models/gemini.toml")),
    ("groq", include_str!("../data/models/groq.toml")),
    ("local", include_str!("../data/models/local.toml")),
    ("localhost", include_str!("../data/models/localhost.toml")),
    ("mistral", include_str!("../data/models/mistral.toml")),
    ("ollama", include_str!("../data/models/ollama.toml")),
    ("openai", include_str!("../data/models/openai.toml")),
];

/// Facts by `provider/model`, or by the names of one provider's models; a key that ends in `*` matches every name with that prefix.
pub type ModelTable = BTreeMap<String, ModelFacts>;

/// Facts about one model. An absent fact is unknown, which by itself never prevents a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFacts {
    /// The size of its context, in tokens.
    pub context_tokens: Option<u64>,
    /// Supports function calling.
    pub function_calling: Option<bool>,
    /// Reads images and files; otherwise they are described to it.
    pub image_input: Option<bool>,
    /// Dollars for a million prompt tokens.
    pub input_usd: Option<f64>,
    /// Dollars for a million generated tokens.
    pub output_usd: Option<f64>,
    /// Dollars for a million prompt tokens from the provider's cache; as `input_usd` when absent.
    pub cache_read_usd: Option<f64>,
    /// Dollars for a million prompt tokens written to the cache; as `input_usd` when absent.
    pub cache_write_usd: Option<f64>,
}

impl ModelFacts {
    /// Returns the price; `None` unless both prompt and reply have one.
    pub fn price(&self) -> Option<Price> {
        let (input, output) = (self.input_usd?, self.output_usd?);
        Some(Price {
            input: nano_usd_a_token(input),
            output: nano_usd_a_token(output),
            cache_read: nano_usd_a_token(self.cache_read_usd.unwrap_or(input)),
            cache_write: nano_usd_a_token(self.cache_write_usd.unwrap_or(input)),
        })
    }

    /// Fills in unknown facts from `other`.
    pub fn or(self, other: Self) -> Self {
        Self {
            context_tokens: self.context_tokens.or(other.context_tokens),
            function_calling: self.function_calling.or(other.function_calling),
            image_input: self.image_input.or(other.image_input),
            input_usd: self.input_usd.or(other.input_usd),
            output_usd: self.output_usd.or(other.output_usd),
            cache_read_usd: self.cache_read_usd.or(other.cache_read_usd),
            cache_write_usd: self.cache_write_usd.or(other.cache_write_usd),
        }
    }
}

/// Returns the facts about a model; the user's override the built-in ones.
///
/// # Errors
/// When a table that ships with the binary cannot be read.
pub fn facts(user: &ModelTable, provider: &str, model: &str) -> Result<ModelFacts> {
    let known = lookup(user, &format!("{provider}/{model}"));
    let known = match other_name(provider) {
        Some(other) => known.or(lookup(user, &format!("{other}/{model}"))),
        None => known,
    };
    let mut tables = TABLES.iter().filter(|(of, _)| *of == provider);
    let built_in = tables.next().map(|(_, table)| read(table)).transpose();
    let built_in = built_in.map_err(|err| {
        SetupError::because(SetupErrorKind::Other, "failed to read the model table", err)
    })?;
    Ok(known.or(lookup(&built_in.unwrap_or_default(), model)))
}

/// Returns the names of all models in the tables.
pub fn names(user: &ModelTable) -> BTreeSet<String> {
    let built_in = TABLES.iter().flat_map(|(provider, table)| {
        let names = read(table).unwrap_or_default().into_keys();
        names.map(move |name| format!("{provider}/{name}"))
    });
    let all = user.keys().cloned().chain(built_in);
    all.filter(|name| !name.ends_with('*')).collect()
}

fn read(table: &str) -> Result<ModelTable, toml::de::Error> {
    toml::from_str(table)
}

fn lookup(table: &ModelTable, name: &str) -> ModelFacts {
    if let Some(facts) = table.get(name) {
        return *facts;
    }
    table
        .iter()
        .filter_map(|(key, facts)| Some((key.strip_suffix('*')?, facts)))
        .filter(|(prefix, _)| name.starts_with(prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|(_, facts)| *facts)
        .unwrap_or_default()
}

fn nano_usd_a_token(usd_a_million: f64) -> u64 {
    NanoUsd::from_usd(usd_a_million / 1e6).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn shipped(provider: &str, model: &str) -> ModelFacts {
        facts(&ModelTable::new(), provider, model).unwrap()
    }

    #[test]
    fn the_longest_prefix_speaks_and_an_unknown_model_is_let_through() {
        assert_eq!(
            shipped("gemini", "gemma-3-27b-it").function_calling,
            Some(false)
        );
        assert_eq!(shipped("gemini", "gemini-9-ultra").function_calling, None);
        assert_eq!(shipped("nobody", "nothing"), ModelFacts::default());
    }

    /// Source of prices.
    #[derive(Deserialize)]
    struct Source {
        url: String,
        date: String,
        models: Vec<String>,
    }

    #[derive(Deserialize)]
    struct Sources {
        sources: Vec<Source>,
    }

    #[test]
    fn each_price_has_one_source_with_its_date() {
        let read_where: Sources =
            toml::from_str(include_str!("../data/models/sources.toml")).unwrap();
        let mut named = BTreeSet::new();
        for source in &read_where.sources {
            assert!(source.url.starts_with("https://"), "{}", source.url);
            let digits: Vec<usize> = source.date.split('-').map(str::len).collect();
            assert_eq!(digits, [4, 2, 2], "{}", source.date);
            for model in &source.models {
                assert!(named.insert(model.clone()), "{model} has two sources");
            }
        }
        // A model on the user's own machine costs nothing, and so do models that are served for free.
        let costs = |it: &ModelFacts| it.price().is_some_and(|it| it != Price::default());
        let mut priced = BTreeSet::new();
        for (provider, table) in TABLES {
            let models = read(table).unwrap().into_iter();
            let models = models.filter(|(_, facts)| costs(facts));
            priced.extend(models.map(|(name, _)| format!("{provider}/{name}")));
        }
        assert_eq!(priced, named);
    }

    #[test]
    fn prices_are_exact_a_token() {
        let price = shipped("openai", "gpt-4o-mini").price().unwrap();
        assert_eq!(
            (price.input, price.output, price.cache_read),
            (150, 600, 75)
        );
        assert_eq!(
            shipped("ollama", "anything").price(),
            Some(Price::default())
        );
    }

    #[test]
    fn facts_by_the_older_name_of_a_server_on_this_machine_hold_for_both() {
        let fits = |context_tokens| ModelFacts {
            context_tokens: Some(context_tokens),
            ..ModelFacts::default()
        };
        let mut user = ModelTable::from([("local/m".to_owned(), fits(1000))]);
        let of = |user: &ModelTable, provider| facts(user, provider, "m").unwrap().context_tokens;
        assert_eq!(
            (of(&user, "localhost"), of(&user, "local")),
            (Some(1000), Some(1000))
        );
        user.insert("localhost/m".to_owned(), fits(2000));
        assert_eq!(
            (of(&user, "localhost"), of(&user, "local")),
            (Some(2000), Some(1000))
        );
        assert_eq!(shipped("localhost", "any").price(), Some(Price::default()));
    }

    #[test]
    fn the_user_overrides_single_facts() {
        let user = ModelTable::from([(
            "gemini/gemma-3-27b-it".to_owned(),
            ModelFacts {
                function_calling: Some(true),
                ..ModelFacts::default()
            },
        )]);
        let known = facts(&user, "gemini", "gemma-3-27b-it").unwrap();
        assert_eq!(known.function_calling, Some(true));
        assert!(known.context_tokens.is_some());
    }
}
