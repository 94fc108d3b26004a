//! The table `[mcp]` of a configuration file.

use rondo_mcp::config::WrittenServer;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Configuration of servers from one source.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpTable {
    /// Servers by name.
    pub servers: BTreeMap<String, WrittenServer>,
    /// Bytes of tools' schemas that are offered in every request; beyond that, tools are found by a search.
    pub schema_bytes_max: Option<usize>,
    /// Also takes servers from files of other programs in a trusted project, such as `.mcp.json`.
    pub project_files: Option<bool>,
}

impl McpTable {
    /// Puts this table over the one below it.
    pub(crate) fn over(self, below: &mut Self) {
        below.servers.extend(self.servers);
        below.schema_bytes_max = self.schema_bytes_max.or(below.schema_bytes_max);
        below.project_files = self.project_files.or(below.project_files);
    }
}
