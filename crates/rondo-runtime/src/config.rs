//! Reads configuration files: the user's own, and a project's, trusted or not.

use crate::error::{Result, SetupError, SetupErrorKind};
use crate::files;
use crate::known_files::KnownFiles;
use crate::table::{ALL_SETTINGS, FromUntrusted, Layer, setting, similar};
use std::path::Path;
use std::sync::Arc;

/// The bound on a configuration file, in bytes.
const CONFIG_BYTES_MAX: u64 = 1 << 20;

impl Layer {
    /// Reads a configuration file; one that does not exist sets nothing.
    ///
    /// # Errors
    /// When the file cannot be read, is larger than a megabyte, or is not such a configuration.
    pub fn from_file(path: &Path) -> Result<Self> {
        Self::read(path, &KnownFiles::default())
    }

    /// Reads it unless it is known.
    pub(crate) fn read(path: &Path, files: &KnownFiles) -> Result<Self> {
        let Some(text) = read_bounded(path, files)? else {
            return Ok(Self::default());
        };
        toml::from_str(&text).map_err(|err| unparsed(path, &text, &err))
    }

    /// Checks what the flags check as they are parsed.
    ///
    /// # Errors
    /// When a number makes no sense; `source` is named then.
    pub fn check(&self, source: &str) -> Result<()> {
        let negative = |number: f64| !(number.is_finite() && number >= 0.0);
        for (key, wrong) in [
            ("temperature", self.temperature.is_some_and(negative)),
            ("max_budget_usd", self.max_budget_usd.is_some_and(negative)),
            (
                "max_session_usd",
                self.max_session_usd.is_some_and(negative),
            ),
            ("max_daily_usd", self.max_daily_usd.is_some_and(negative)),
            (
                "max_project_daily_usd",
                self.max_project_daily_usd.is_some_and(negative),
            ),
            ("max_output_tokens", self.max_output_tokens == Some(0)),
            ("max_steps", self.max_steps == Some(0)),
        ] {
            if wrong {
                let message = format!("`{key}`, as set by {source}, is out of its range");
                return Err(SetupError::new(SetupErrorKind::Config, message));
            }
        }
        Ok(())
    }
}

/// Settings that an untrusted folder may set, and its other ones.
type SortedSettings = (Layer, Vec<(String, toml::Value)>);

/// Reads the configuration file of an untrusted folder: what narrows, and what is ignored.
///
/// # Errors
/// As [`Layer::from_file`].
pub(crate) fn untrusted_layer(path: &Path, files: &KnownFiles) -> Result<SortedSettings> {
    let Some(text) = read_bounded(path, files)? else {
        return Ok(SortedSettings::default());
    };
    sorted(&text).map_err(|err| unparsed(path, &text, &err))
}

fn sorted(text: &str) -> Result<SortedSettings, toml::de::Error> {
    // An ignored setting must be valid all the same.
    toml::from_str::<Layer>(text)?;
    let table: toml::Table = toml::from_str(text)?;
    let (kept, ignored): (Vec<_>, Vec<_>) = table
        .into_iter()
        .partition(|(key, value)| may_be_set(key, value));
    let kept: toml::Table = kept.into_iter().collect();
    Ok((kept.try_into()?, ignored))
}

fn may_be_set(key: &str, value: &toml::Value) -> bool {
    // A table that is not a setting, such as a provider, adds to the known ones.
    match setting(key).map_or(FromUntrusted::Ignored, |it| it.untrusted) {
        FromUntrusted::MayOnlyBe(position) => value.as_bool() == Some(position),
        FromUntrusted::MayLower | FromUntrusted::MayAdd => true,
        FromUntrusted::Ignored => false,
    }
}

pub(crate) fn unparsed(path: &Path, text: &str, err: &toml::de::Error) -> SetupError {
    let before = err.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!(":{}", before.matches('\n').count() + 1));
    let place = format!("{}{}", path.display(), line.unwrap_or_default());
    let context = format!("failed to parse `{place}`");
    let shown = err.to_string().trim_end().to_owned();
    let Some((before, name, known)) = unknown_key(&shown) else {
        return SetupError::because(SetupErrorKind::Config, context, shown);
    };
    let similar = similar(name, known.iter().copied());
    let are_settings = known.iter().any(|it| setting(it).is_some());
    let hint = match similar.is_empty() {
        true if are_settings => ALL_SETTINGS.to_owned(),
        true => format!("the keys are: {}", known.join(", ")),
        false => format!("did you mean {}?", similar.join(" or ")),
    };
    SetupError::because(SetupErrorKind::Config, context, before.to_owned()).hint(hint)
}

/// Splits an error about an unknown key: the error without the keys that would be known, the key, and those keys.
fn unknown_key(error: &str) -> Option<(&str, &str, Vec<&str>)> {
    let (before, known) = error.split_once(", expected one of ")?;
    let (_, name) = before.rsplit_once("unknown field `")?;
    let known = known.split(", ").map(|it| it.trim_matches('`'));
    Some((before, name.strip_suffix('`')?, known.collect()))
}

pub(crate) fn read_bounded(path: &Path, known: &KnownFiles) -> Result<Option<Arc<str>>> {
    match known.read(path, CONFIG_BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        // A home such as `/dev/null` has no files either.
        Err(_) if !files::is_present(path) => Ok(None),
        Err(err) => {
            let context = format!("failed to read `{}`", path.display());
            Err(SetupError::because(SetupErrorKind::Config, context, err))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every setting, with a value that would widen something.
    const WIDE: &str = "model = 'hf:a/b/c.gguf'\nfallbacks = ['./trap.gguf']\nprofile = 'python'\n\
        base_url = 'http://evil'\nallowed_tools = ['exec']\nyolo = true\noffline = false\n\
        add_dirs = ['/']\nsystem_prompt = 'x'\nappend_system_prompt = 'x'\ntemperature = 2.0\n\
        effort = 'high'\noutput_format = 'json'\ndurability = 'normal'\nephemeral = true\n\
        strict_complete = false\nquiet = true\ncolor = 'always'\nedit_keys = 'vi'\n\
        ca_file = '/x'\ntrusted_folders = ['/']\n[providers.p]\ndialect = 'gemini'\n\
        [models.'a/b']\ninput_usd = 0.0\n[profiles.default]\nallowed_tools = ['exec']\n";

    #[test]
    fn an_unknown_key_is_answered_with_similar_ones() {
        let error = |text: &str| {
            let err = toml::from_str::<Layer>(text).unwrap_err();
            unparsed(Path::new("f"), text, &err)
        };
        let mistyped = error("max_stesp = 3\n");
        assert!(!mistyped.line().contains("expected one of"));
        assert_eq!(mistyped.hint.unwrap(), "did you mean `max_steps`?");
        assert_eq!(error("zzz = 3\n").hint.unwrap(), ALL_SETTINGS);
        let wrong = error("effort = 'huge'\n");
        assert_eq!(wrong.hint, None);
    }

    #[test]
    fn an_untrusted_project_sets_nothing_that_widens() {
        let (layer, ignored) = sorted(WIDE).unwrap();
        assert_eq!(format!("{layer:?}"), format!("{:?}", Layer::default()));
        let table: toml::Table = toml::from_str(WIDE).unwrap();
        let mut all: Vec<_> = table.keys().cloned().collect();
        all.sort();
        let mut ignored: Vec<_> = ignored.into_iter().map(|(name, _)| name).collect();
        ignored.sort();
        assert_eq!(ignored, all);
    }

    #[test]
    fn an_untrusted_project_sets_what_narrows() {
        let text = "deadline = '2s'\ndisallowed_tools = ['exec']\nmax_budget_usd = 0.5\n\
            max_output_tokens = 9\nmax_steps = 2\nmax_tokens_total = 7\nmax_tool_calls = 3\n\
            offline = true\nyolo = false\n";
        let whole: Layer = toml::from_str(text).unwrap();
        let (layer, ignored) = sorted(text).unwrap();
        assert!(ignored.is_empty());
        assert_eq!(format!("{layer:?}"), format!("{whole:?}"));
    }

    #[test]
    fn a_number_out_of_its_range_is_refused_with_its_key_and_source() {
        for text in [
            "temperature = nan",
            "temperature = -1.0",
            "max_budget_usd = -0.5",
            "max_output_tokens = 0",
            "max_steps = 0",
        ] {
            let layer: Layer = toml::from_str(text).unwrap();
            let error = layer.check("the file").unwrap_err();
            let key = text.split(' ').next().unwrap();
            assert!(error.line().contains(key), "{}", error.line());
            assert!(error.line().contains("the file"), "{}", error.line());
            assert_eq!(error.kind, SetupErrorKind::Config);
        }
    }
}
