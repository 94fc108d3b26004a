//! The lists of a server, page by page, each within a bound. One entry that makes no sense costs that entry alone.

use crate::offer::ToolDefinition;
use rmcp::model::{
    ClientRequest, ListPromptsRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams, ServerResult,
};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::Value;

/// The bound on pages of one list.
const PAGES_MAX: usize = 64;
/// The bound on entries of one list.
pub(crate) const ENTRIES_MAX: usize = 1024;
/// The bound on one list, as JSON, in bytes.
const LIST_BYTES_MAX: usize = 4 << 20;

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptInfo {
    /// Name of the prompt.
    pub name: String,
    /// Purpose of the prompt, on one line.
    pub description: String,
    /// Its arguments, and whether each is needed.
    pub arguments: Vec<(String, bool)>,
}

/// A resource of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceInfo {
    /// URI of the resource.
    pub uri: String,
    /// Its name, on one line.
    pub name: String,
}

/// Kind of list.
#[derive(Clone, Copy)]
enum List {
    Tools,
    Prompts,
    Resources,
}

/// Returns the tools, and why others are left out.
pub(crate) async fn tools(
    peer: &Peer<RoleClient>,
) -> Result<(Vec<ToolDefinition>, Vec<(String, String)>), ServiceError> {
    let (mut tools, mut aside): (Vec<ToolDefinition>, _) = (Vec::new(), Vec::new());
    for entry in entries(peer, List::Tools).await? {
        match ToolDefinition::read(&entry) {
            Ok(tool) if tools.iter().any(|it| it.name == tool.name) => {
                aside.push((tool.name, "there is another one of that name".to_owned()));
            }
            Ok(tool) => tools.push(tool),
            Err(why) => aside.push((text(&entry, "name"), why)),
        }
    }
    Ok((tools, aside))
}

/// Returns the prompts.
pub(crate) async fn prompts(peer: &Peer<RoleClient>) -> Result<Vec<PromptInfo>, ServiceError> {
    let entries = entries(peer, List::Prompts).await?;
    Ok(entries.iter().map(prompt).collect())
}

/// Returns the resources.
pub(crate) async fn resources(peer: &Peer<RoleClient>) -> Result<Vec<ResourceInfo>, ServiceError> {
    let entries = entries(peer, List::Resources).await?;
    let resource = |entry: &Value| ResourceInfo {
        uri: text(entry, "uri"),
        name: text(entry, "name"),
    };
    Ok(entries.iter().map(resource).collect())
}

fn prompt(entry: &Value) -> PromptInfo {
    let arguments = entry.get("arguments").and_then(Value::as_array);
    let argument = |it: &Value| {
        let is_needed = it.get("required") == Some(&Value::Bool(true));
        (text(it, "name"), is_needed)
    };
    PromptInfo {
        name: text(entry, "name"),
        description: text(entry, "description"),
        arguments: arguments.into_iter().flatten().map(argument).collect(),
    }
}

fn text(entry: &Value, key: &str) -> String {
    let text = entry.get(key).and_then(Value::as_str).unwrap_or_default();
    rondo_core::shown::line(&text.chars().take(300).collect::<String>())
}

async fn entries(peer: &Peer<RoleClient>, list: List) -> Result<Vec<Value>, ServiceError> {
    let (mut entries, mut bytes, mut cursor) = (Vec::new(), 0, None);
    for _ in 0..PAGES_MAX {
        let page = page(peer, list, cursor).await?;
        bytes += page.to_string().len();
        if bytes > LIST_BYTES_MAX {
            tracing::warn!("a server's list is longer than {LIST_BYTES_MAX} bytes");
            break;
        }
        let key = match list {
            List::Tools => "tools",
            List::Prompts => "prompts",
            List::Resources => "resources",
        };
        let found = page.get(key).and_then(Value::as_array);
        entries.extend(found.into_iter().flatten().cloned());
        cursor = page
            .get("nextCursor")
            .and_then(Value::as_str)
            .map(str::to_owned);
        if cursor.as_ref().is_none_or(String::is_empty) || entries.len() >= ENTRIES_MAX {
            break;
        }
    }
    entries.truncate(ENTRIES_MAX);
    Ok(entries)
}

/// The result as JSON: rmcp takes a list for something else if one entry of it is not as it should be.
async fn page(
    peer: &Peer<RoleClient>,
    list: List,
    cursor: Option<String>,
) -> Result<Value, ServiceError> {
    let params = cursor.map(|it| PaginatedRequestParams::default().with_cursor(Some(it)));
    let request = match list {
        List::Tools => ClientRequest::ListToolsRequest(ListToolsRequest {
            method: Default::default(),
            params,
            extensions: Default::default(),
        }),
        List::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest {
            method: Default::default(),
            params,
            extensions: Default::default(),
        }),
        List::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest {
            method: Default::default(),
            params,
            extensions: Default::default(),
        }),
    };
    let result = peer.send_request(request).await?;
    match result {
        ServerResult::CustomResult(custom) => Ok(custom.0),
        result => serde_json::to_value(result).map_err(|_| ServiceError::UnexpectedResponse),
    }
}
