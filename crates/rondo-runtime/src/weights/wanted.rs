//! Parses the name of weights, and finds their path.

use super::catalogue::{CatalogueModel, catalogue};
use crate::error::Result;
use crate::settings::Settings;
use std::path::{Path, PathBuf};

/// Names a GGUF file to ask, or a directory to look in first.
const PATH_VARIABLE: &str = "RONDO_MODEL_PATH";
/// How a file of the hub is written: `hf:owner/repository/file`.
const HUB_PREFIX: &str = "hf:";

/// Weights that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsSource {
    /// Those of a model of the catalog.
    Known(Box<CatalogueModel>),
    /// A file of the user's own.
    File(PathBuf),
    /// Any file of the hub, of which no hash is known.
    Hub {
        /// `owner/repository`.
        repository: String,
        /// The file's name in it.
        file: String,
    },
}

impl WeightsSource {
    /// Reads the name of an embedded model; `None` when it is none.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub fn parse(name: &str) -> Result<Option<Self>> {
        if let Some(place) = name.strip_prefix(HUB_PREFIX) {
            return Ok(parse_hub(place));
        }
        if Path::new(name)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
        {
            return Ok(Some(Self::File(PathBuf::from(name))));
        }
        let found = catalogue()?.into_iter().find(|model| model.name == name);
        Ok(found.map(|model| Self::Known(Box::new(model))))
    }

    /// Returns the weights of the default model.
    ///
    /// # Errors
    /// When the catalog cannot be read.
    pub fn default(settings: &Settings) -> Result<Option<Self>> {
        if let Some(path) = settings.env.get(PATH_VARIABLE).map(PathBuf::from)
            && path.is_file()
        {
            return Ok(Some(Self::File(path)));
        }
        let first = catalogue()?.into_iter().next();
        Ok(first.map(|model| Self::Known(Box::new(model))))
    }

    /// Returns the model's name behind `local/`.
    pub fn name(&self) -> String {
        match self {
            Self::Known(model) => model.name.clone(),
            Self::File(path) => path.display().to_string(),
            Self::Hub { repository, file } => format!("{HUB_PREFIX}{repository}/{file}"),
        }
    }

    /// Returns the tokens that a conversation may have, if they are known.
    pub fn context_tokens(&self) -> Option<u64> {
        match self {
            Self::Known(model) => Some(model.context_tokens),
            Self::File(_) | Self::Hub { .. } => None,
        }
    }
}

fn parse_hub(place: &str) -> Option<WeightsSource> {
    let mut parts = place.splitn(3, '/');
    let (owner, repository, file) = (parts.next()?, parts.next()?, parts.next()?);
    let is_plain = |part: &str| !part.is_empty() && !part.split('/').any(|it| it == "..");
    if !(is_plain(owner) && is_plain(repository) && is_plain(file)) {
        return None;
    }
    Some(WeightsSource::Hub {
        repository: format!("{owner}/{repository}"),
        file: file.to_owned(),
    })
}

/// Store of weights.
#[derive(Debug, Clone)]
pub struct Store {
    /// Rondo's own directory, which is written to.
    pub directory: PathBuf,
    /// The user's directory, which is only read.
    given: Option<PathBuf>,
    working_directory: PathBuf,
}

impl Store {
    /// Finds the store. Nothing is created.
    pub fn of(settings: &Settings) -> Self {
        let given = settings.env.get(PATH_VARIABLE).map(PathBuf::from);
        Self {
            directory: settings.paths.cache.join("models"),
            given: given.filter(|path| path.is_dir()),
            working_directory: settings.directory.clone(),
        }
    }

    /// Returns the path of weights once they are here.
    pub fn place(&self, wanted: &WeightsSource) -> PathBuf {
        match wanted {
            WeightsSource::Known(model) => self.directory.join(&model.file),
            WeightsSource::File(path) => self.working_directory.join(path),
            WeightsSource::Hub { repository, file } => {
                let flat = format!("{repository}--{file}").replace('/', "--");
                self.directory.join("hub").join(flat)
            }
        }
    }

    /// Returns the current path of weights; `None` if they are not here. Those in the store were
    /// checked when they came; a file of the user's directory must at least have the right size.
    pub fn find(&self, wanted: &WeightsSource) -> Option<PathBuf> {
        let own = self.place(wanted);
        if own.is_file() {
            return Some(own);
        }
        let WeightsSource::Known(model) = wanted else {
            return None;
        };
        let given = self.given.as_ref()?.join(&model.file);
        let size = given.metadata().ok()?.len();
        (size == model.bytes).then_some(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_paths_and_files_of_the_hub_are_told_apart() {
        let parse = |name: &str| WeightsSource::parse(name).unwrap();
        assert!(matches!(
            parse("qwen2.5-coder-0.5b"),
            Some(WeightsSource::Known(_))
        ));
        assert_eq!(
            parse("./some/Model.GGUF"),
            Some(WeightsSource::File("./some/Model.GGUF".into()))
        );
        assert_eq!(
            parse("hf:owner/repo/sub/file.gguf"),
            Some(WeightsSource::Hub {
                repository: "owner/repo".into(),
                file: "sub/file.gguf".into()
            })
        );
        for other in ["hf:owner", "hf:o/r/", "hf:o/r/../x", "llama3", ""] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
