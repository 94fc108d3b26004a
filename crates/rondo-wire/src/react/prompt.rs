//! Describes tools in the system prompt.

use super::quoting::escape;
use rondo_types::ToolSpec;
use serde_json::Value;

/// Placeholder for the tools in a system prompt.
const PLACE: &str = "{{TOOLS_XML}}";
/// One level of indentation.
const INDENT: &str = "    ";
/// The levels of a schema that are laid out; deeper ones are on their line.
const LEVELS_MAX: usize = 16;

/// Puts the tools into the system prompt, and behind it if it has no place for them.
pub(super) fn with_tools(system: &[String], tools: &[ToolSpec]) -> Vec<String> {
    let rendered = tools.iter().map(tool).collect::<Vec<_>>().join("\n");
    let mut blocks: Vec<String> = system
        .iter()
        .map(|block| block.replace(PLACE, &rendered))
        .collect();
    let placed = system.iter().any(|block| block.contains(PLACE));
    if !placed && !tools.is_empty() {
        blocks.push(protocol(&rendered));
    }
    blocks
}

/// The protocol for a system prompt that does not know it.
fn protocol(tools: &str) -> String {
    format!(
        "You can use these tools:\n\n<tool_definitions>\n{tools}\n</tool_definitions>\n\n\
         To use one, end your reply with exactly one block of this form:\n\
         <tool_code>\n<name>tool_name</name>\n<parameters>\n{{\"argument\": \"value\"}}\n\
         </parameters>\n</tool_code>\n\n\
         The result comes as an <observation>; never write one yourself. \
         When you need no tool, answer in plain text."
    )
}

fn tool(spec: &ToolSpec) -> String {
    let mut schema = String::new();
    write(&spec.parameters, 2, &mut schema);
    let (name, description) = (&spec.name, escape(&spec.description));
    let schema = escape(&schema);
    format!(
        "<tool>\n{INDENT}<name>{name}</name>\n{INDENT}<description>{description}</description>\n\
         {INDENT}<parameters>\n{INDENT}{INDENT}{schema}\n{INDENT}</parameters>\n</tool>"
    )
}

/// Writes JSON with an object a line, objects and lists without others in them on one line.
fn write(value: &Value, level: usize, out: &mut String) {
    match value {
        Value::Object(fields) if level < LEVELS_MAX && !fields.is_empty() => {
            let top = level == 2;
            let flat = !top && fields.values().all(is_flat);
            let fields = fields.iter().map(|(key, value)| {
                let mut text = format!("{}: ", Value::from(key.as_str()));
                write(value, level + 1, &mut text);
                text
            });
            list(
                &mut fields.collect::<Vec<_>>(),
                flat,
                ["{", "}"],
                level,
                out,
            );
        }
        Value::Array(items) if level < LEVELS_MAX && !items.iter().all(is_flat) => {
            let items = items.iter().map(|item| {
                let mut text = String::new();
                write(item, level + 1, &mut text);
                text
            });
            list(
                &mut items.collect::<Vec<_>>(),
                false,
                ["[", "]"],
                level,
                out,
            );
        }
        Value::Array(items) if items.iter().all(is_flat) => {
            let items: Vec<_> = items.iter().map(ToString::to_string).collect();
            out.push_str(&format!("[{}]", items.join(", ")));
        }
        other => out.push_str(&other.to_string()),
    }
}

fn list(
    items: &mut [String],
    flat: bool,
    [open, close]: [&str; 2],
    level: usize,
    out: &mut String,
) {
    if flat {
        out.push_str(&format!("{open} {} {close}", items.join(", ")));
        return;
    }
    let outer = INDENT.repeat(level);
    let items = items.join(&format!(",\n{outer}{INDENT}"));
    out.push_str(&format!("{open}\n{outer}{INDENT}{items}\n{outer}{close}"));
}

/// `true` if a value holds no object, so that it can be on the line of its key.
fn is_flat(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        Value::Array(items) => items
            .iter()
            .all(|item| !matches!(item, Value::Object(_) | Value::Array(_))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
