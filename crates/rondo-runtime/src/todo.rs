//! The session's to-do list, and the tool by which the agent keeps it.

use async_trait::async_trait;
use rondo_core::Tool;
use rondo_core::ports::ToolInvocation;
use rondo_types::{
    Concurrency, Effects, Recovery, TodoItem, TodoStatus, ToolErrorCode, ToolHints, ToolKind,
    ToolOutcome, ToolOutput, ToolSpec,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of the tool.
pub(crate) const NAME: &str = "todo";

/// The to-do list of a session, from its records. Clones are the same list.
#[derive(Debug, Clone, Default)]
pub struct TodoList(Arc<Mutex<Vec<TodoItem>>>);

impl TodoList {
    pub(crate) fn new(items: Vec<TodoItem>) -> Self {
        Self(Arc::new(Mutex::new(items)))
    }

    /// Returns its items; empty if there is no list.
    #[must_use]
    pub fn items(&self) -> Vec<TodoItem> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TodoItem>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces the list, or returns it. The list is in the record of the call, so a repeated call changes nothing more.
pub(crate) struct TodoTool(pub(crate) TodoList);

#[async_trait]
impl Tool for TodoTool {
    fn spec(&self) -> ToolSpec {
        let description = "Keeps a to-do list that the user sees, for work of three steps or more. Mark an item in_progress \
            before you begin it, and done at once. Replaces the whole list, or returns it without `items`.";
        ToolSpec {
            name: NAME.to_owned(),
            description: description.to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "maxItems": TodoItem::COUNT_MAX,
                        "items": {
                            "type": "object",
                            "properties": {
                                "text": {"type": "string"},
                                "status": {"type": "string", "enum": ["pending", "in_progress", "done"]},
                            },
                            "required": ["text", "status"],
                        },
                    },
                },
            }),
            effects: Effects::ReadOnly,
            concurrency: Concurrency::Exclusive,
            recovery: Recovery::ReadOnly,
            kind: ToolKind::Think,
            hints: ToolHints::looks_only(),
            ..ToolSpec::default()
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let Some(items) = invocation.arguments.get("items") else {
            return ToolOutcome::text(as_text(&self.0.items()));
        };
        let items = match read(items) {
            Ok(items) => items,
            Err(why) => return ToolOutcome::error(ToolErrorCode::InvalidArgs, why),
        };
        self.0.lock().clone_from(&items);
        ToolOutcome::Ok(ToolOutput {
            value: Value::String(summary(&items)),
            todo: Some(items),
            ..ToolOutput::default()
        })
    }
}

fn read(items: &Value) -> Result<Vec<TodoItem>, String> {
    let items = serde_json::from_value::<Vec<TodoItem>>(items.clone());
    let mut items = items.map_err(|err| format!("the items cannot be read: {err}"))?;
    if items.len() > TodoItem::COUNT_MAX {
        return Err(format!("a list has at most {} items", TodoItem::COUNT_MAX));
    }
    for item in &mut items {
        // One line each, so that every host can show them.
        item.text = item.text.split_whitespace().collect::<Vec<_>>().join(" ");
        if item.text.is_empty() || item.text.len() > TodoItem::TEXT_BYTES_MAX {
            let max = TodoItem::TEXT_BYTES_MAX;
            return Err(format!("the text of an item has 1 to {max} bytes"));
        }
    }
    Ok(items)
}

fn summary(items: &[TodoItem]) -> String {
    let count = |status| items.iter().filter(|it| it.status == status).count();
    match items.is_empty() {
        true => "the list is empty now".to_owned(),
        false => format!(
            "{} done, {} in progress, {} pending",
            count(TodoStatus::Done),
            count(TodoStatus::InProgress),
            count(TodoStatus::Pending)
        ),
    }
}

/// Returns the list as lines of text, each with its mark: `[x]` done, `[>]` in progress, `[ ]` pending.
#[must_use]
pub fn as_text(items: &[TodoItem]) -> String {
    if items.is_empty() {
        return "there is no to-do list".to_owned();
    }
    let lines = items
        .iter()
        .map(|it| format!("{} {}", mark(it.status), it.text));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the text before an item.
#[must_use]
pub fn mark(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "[ ]",
        TodoStatus::InProgress => "[>]",
        TodoStatus::Done => "[x]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: usize, bytes: usize) -> Value {
        let item = json!({"text": "x".repeat(bytes), "status": "done"});
        Value::Array(vec![item; count])
    }

    #[test]
    fn a_list_and_its_items_are_bounded() {
        for (count, is_fine) in [(63, true), (64, true), (65, false)] {
            assert_eq!(read(&of(count, 1)).is_ok(), is_fine, "{count}");
        }
        for (bytes, is_fine) in [
            (0, false),
            (1, true),
            (511, true),
            (512, true),
            (513, false),
        ] {
            assert_eq!(read(&of(1, bytes)).is_ok(), is_fine, "{bytes}");
        }
    }

    #[test]
    fn an_item_is_one_line() {
        let items = read(&json!([
            {"text": " one\n two ", "status": "in_progress"},
            {"text": "three"},
        ]));
        let items = items.unwrap();
        assert_eq!(as_text(&items), "[>] one two\n[ ] three");
        assert_eq!(summary(&items), "0 done, 1 in progress, 1 pending");
        assert!(read(&json!("x")).is_err());
    }
}
