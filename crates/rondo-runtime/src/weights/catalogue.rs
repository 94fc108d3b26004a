//! The models whose weights Rondo downloads by name.

use crate::error::SetupErrorKind;
use crate::error::{Result, SetupError};
use serde::Deserialize;

const TABLE: &str = include_str!("../../data/local-models.toml");

/// One model of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueModel {
    /// The name behind `local/`.
    pub name: String,
    /// Strength of the model, as half a sentence.
    pub summary: String,
    /// The repository on the hub, if it is there.
    pub repository: Option<String>,
    /// The revision in the repository.
    #[serde(default = "main_revision")]
    pub revision: String,
    /// The file's name.
    pub file: String,
    /// The file's size.
    pub bytes: u64,
    /// The file's SHA-256, in lower-case hexadecimal.
    pub sha256: String,
    /// The license, as SPDX writes it.
    pub licence: String,
    /// Tokens that a conversation may have here.
    pub context_tokens: u64,
    /// How conversations are written for it.
    pub template: String,
    /// The same file on a package index, if it is there.
    pub index: Option<IndexParts>,
}

/// A file in pieces: the largest member of each wheel, one after another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexParts {
    /// The packages' name; `{n}` is the number of the piece.
    pub package: String,
    /// The packages' version.
    pub version: String,
    /// How many pieces there are.
    pub parts: u32,
}

impl IndexParts {
    /// Returns the requirements to ask the index for, piece by piece.
    pub fn requirements(&self) -> Vec<String> {
        (1..=self.parts)
            .map(|n| {
                let package = self.package.replace("{n}", &n.to_string());
                format!("{package}=={}", self.version)
            })
            .collect()
    }
}

#[derive(Deserialize)]
struct Table {
    models: Vec<CatalogueModel>,
}

fn main_revision() -> String {
    "main".to_owned()
}

/// Returns the catalog; the first model is the default.
///
/// # Errors
/// When the table that ships with the binary cannot be read.
pub fn catalogue() -> Result<Vec<CatalogueModel>> {
    let table: Table = toml::from_str(TABLE).map_err(|err| {
        let context = "failed to read the table of local models";
        SetupError::because(SetupErrorKind::Other, context, err)
    })?;
    Ok(table.models)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_pinned_byte_for_byte() {
        let models = catalogue().unwrap();
        let default = &models[0];
        assert_eq!(default.name, "qwen2.5-coder-1.5b");
        assert_eq!(default.bytes, 1_117_320_768);
        for model in &models {
            assert_eq!(model.sha256.len(), 64, "{}", model.name);
            assert!(model.bytes > 0, "{}", model.name);
            assert!(
                model.repository.is_some() || model.index.is_some(),
                "{}",
                model.name
            );
        }
    }

    #[test]
    fn pieces_are_counted_from_one() {
        let parts = IndexParts {
            package: "weights-part{n}".into(),
            version: "1.2".into(),
            parts: 2,
        };
        assert_eq!(
            parts.requirements(),
            ["weights-part1==1.2", "weights-part2==1.2"]
        );
    }
}
