//! The names of tools, without a copy of each.

use crate::ToolSpec;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// The names of tools, in order; written as a list of texts. They lie in the specs that they are of, which clones share:
/// each turn says what it offers, and a thousand turns at the same time offer the same.
#[derive(Clone, Default)]
pub struct ToolNames(Arc<Vec<ToolSpec>>);

impl ToolNames {
    /// Returns the names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|it| it.name.as_str())
    }
}

impl From<Arc<Vec<ToolSpec>>> for ToolNames {
    fn from(specs: Arc<Vec<ToolSpec>>) -> Self {
        Self(specs)
    }
}

impl fmt::Debug for ToolNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for ToolNames {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for ToolNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for ToolNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?.into_iter();
        let specs = names.map(|name| ToolSpec {
            name,
            ..ToolSpec::default()
        });
        Ok(Self(Arc::new(specs.collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_written_as_texts_and_read_again() {
        let named = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: "what it does".to_owned(),
            ..ToolSpec::default()
        };
        let names = ToolNames::from(Arc::new(vec![named("exec"), named("look")]));
        let text = serde_json::to_string(&names).unwrap();
        assert_eq!(text, r#"["exec","look"]"#);
        let read: ToolNames = serde_json::from_str(&text).unwrap();
        assert_eq!(read, names);
        assert_eq!(read.iter().collect::<Vec<_>>(), ["exec", "look"]);
        assert_ne!(read, ToolNames::default());
    }
}
