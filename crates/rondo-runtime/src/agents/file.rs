//! One agent file.

use crate::skills::SkillSource;
use rondo_tools::front_matter::FrontMatter;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Names of tools in other programs' files, and ours.
const TOOLS: &str = include_str!("../../data/agent_tools.toml");
/// The bound on a name, in bytes.
const NAME_MAX: usize = 64;
/// The bound on a description, in characters; the rest is left out.
pub(super) const DESCRIPTION_CHARS_MAX: usize = 1024;
/// The bound on the names of tools in a file.
const TOOLS_MAX: usize = 256;
/// Value for an agent that asks the model of the session.
const INHERIT: &str = "inherit";

/// An agent that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Name of the agent.
    pub name: String,
    /// Purpose of the agent, at most 1,024 characters.
    pub description: String,
    /// Takes the place of the profile's system prompt.
    pub prompt: String,
    /// The only tools that it gets, by our names; `None` is all.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not get.
    pub disallowed_tools: Vec<String>,
    /// The model that it asks, as `provider/model`; `None` is the session's.
    pub model: Option<String>,
    /// Whose it is.
    pub source: SkillSource,
    /// File of the agent.
    pub file: PathBuf,
    /// Ignored parts of its file, with reasons.
    pub notes: Vec<String>,
}

impl Agent {
    /// Reads an agent from the text of its file.
    ///
    /// # Errors
    /// When the file is invalid, with the reason.
    pub(super) fn parse(text: &str, file: PathBuf, source: SkillSource) -> Result<Self, String> {
        let front = FrontMatter::parse(text)?;
        let name = front.text("name").ok_or("it has no `name`")?;
        check_name(&name)?;
        let description = front.text("description").ok_or("it has no `description`")?;
        let prompt = front.body.trim();
        if prompt.is_empty() {
            return Err("it has no prompt behind its front matter".to_owned());
        }
        let mut notes = Vec::new();
        let mut tools = |key: &str| -> Result<Option<Vec<String>>, String> {
            let Some(names) = names(front.value(key)) else {
                return Ok(None);
            };
            if names.len() > TOOLS_MAX {
                return Err(format!("its `{key}` names more than {TOOLS_MAX} tools"));
            }
            let ours = names.iter().filter_map(|it| our_name(it, &mut notes));
            Ok(Some(ours.collect()))
        };
        let allowed = tools("tools")?;
        let disallowed = tools("disallowedTools")?.unwrap_or_default();
        let model = model(front.text("model"), source, &mut notes);
        Ok(Self {
            name,
            description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
            prompt: prompt.to_owned(),
            tools: allowed,
            disallowed_tools: disallowed,
            model,
            source,
            file,
            notes,
        })
    }

    /// Returns whether the agent gets a tool that it may get.
    #[must_use]
    pub fn gets(&self, tool: &str) -> bool {
        let is_named = |names: &[String]| names.iter().any(|it| it == tool);
        self.tools.as_deref().is_none_or(is_named) && !is_named(&self.disallowed_tools)
    }
}

/// A hostile file may name a model to have the conversation sent elsewhere, or to spend money.
fn model(named: Option<String>, source: SkillSource, notes: &mut Vec<String>) -> Option<String> {
    let model = named.filter(|it| it != INHERIT)?;
    if source == SkillSource::Project {
        notes.push(format!(
            "its model `{model}` is ignored, since its folder is not trusted"
        ));
        return None;
    }
    if !model.contains('/') {
        notes.push(format!(
            "its model `{model}` is not `provider/model`, so the session's model is used"
        ));
        return None;
    }
    Some(model)
}

/// Returns the names of a list, or of a text with commas between them.
fn names(value: Option<&Value>) -> Option<Vec<String>> {
    let names: Vec<&str> = match value? {
        Value::String(text) => text.split(',').collect(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let names = names.into_iter().map(|it| it.trim().to_owned());
    Some(names.filter(|it| !it.is_empty()).collect())
}

/// Returns our name of a tool. One with a pattern is left out: it would get more than its file says.
fn our_name(name: &str, notes: &mut Vec<String>) -> Option<String> {
    if name.contains('(') {
        notes.push(format!(
            "`{name}` is left out: agent files name whole tools here; `policy.toml` has rules of calls"
        ));
        return None;
    }
    let table: BTreeMap<String, String> = toml::from_str(TOOLS).unwrap_or_default();
    if let Some(ours) = table.get(name) {
        return Some(ours.clone());
    }
    // Ours, and those of servers, are written as they are.
    let is_ours = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "_-".contains(it);
    if name.starts_with("mcp__") || name.chars().all(is_ours) {
        return Some(name.to_owned());
    }
    notes.push(format!("there is no equivalent of `{name}` here"));
    None
}

fn check_name(name: &str) -> Result<(), String> {
    let is_letter = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    match name.len() <= NAME_MAX && name.chars().all(is_letter) {
        true => Ok(()),
        false => Err(format!(
            "its name must be up to {NAME_MAX} letters, digits, hyphens and underscores"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, source: SkillSource) -> Result<Agent, String> {
        Agent::parse(text, PathBuf::from("a.md"), source)
    }

    #[test]
    fn a_file_of_claude_code_is_read_as_it_is() {
        let text = "---\nname: code-reviewer\ndescription: Reviews code: use after changes.\ntools: Read, Grep, Bash, NotebookEdit\ndisallowedTools: Write\nmodel: sonnet\ncolor: red\n---\n\nYou review code.\n";
        let agent = parse(text, SkillSource::User).unwrap();
        assert_eq!(agent.name, "code-reviewer");
        assert_eq!(agent.description, "Reviews code: use after changes.");
        assert_eq!(agent.prompt, "You review code.");
        let table: BTreeMap<String, String> = toml::from_str(TOOLS).unwrap();
        let ours: Vec<String> = ["Read", "Grep", "Bash"].map(|it| table[it].clone()).into();
        assert_eq!(agent.tools, Some(ours.clone()));
        assert_eq!(agent.disallowed_tools, [table["Write"].clone()]);
        assert_eq!(agent.model, None);
        assert_eq!(agent.notes.len(), 2, "{:?}", agent.notes);
        assert!(agent.gets(&ours[0]) && !agent.gets("todo") && !agent.gets(&table["Write"]));
    }

    #[test]
    fn only_a_trusted_file_names_a_model_and_no_pattern_widens() {
        let text = "---\nname: a\ndescription: d\ntools: [\"Bash(git *)\", mcp__x__y, todo]\nmodel: own/m\n---\nDo it.";
        let of_user = parse(text, SkillSource::User).unwrap();
        assert_eq!(of_user.model.as_deref(), Some("own/m"));
        assert_eq!(
            of_user.tools.unwrap(),
            ["mcp__x__y".to_owned(), "todo".to_owned()]
        );
        assert_eq!(parse(text, SkillSource::Project).unwrap().model, None);
    }

    #[test]
    fn what_is_no_agent_says_why() {
        for (text, why) in [
            ("hello", "does not begin"),
            ("---\ndescription: d\n---\nx", "no `name`"),
            ("---\nname: a\n---\nx", "no `description`"),
            ("---\nname: a\ndescription: d\n---\n \n", "no prompt"),
            ("---\nname: a/b\ndescription: d\n---\nx", "its name must"),
        ] {
            let problem = parse(text, SkillSource::User).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
        let named = |count: usize| {
            let text = format!("---\nname: {}\ndescription: d\n---\nx", "n".repeat(count));
            parse(&text, SkillSource::User).is_ok()
        };
        assert_eq!([63, 64, 65].map(named), [true, true, false]);
        let tools = |count: usize| {
            let tools = vec!["todo"; count].join(",");
            let text = format!("---\nname: a\ndescription: d\ntools: {tools}\n---\nx");
            parse(&text, SkillSource::User).is_ok()
        };
        let max = TOOLS_MAX;
        assert_eq!([max - 1, max, max + 1].map(tools), [true, true, false]);
    }
}
