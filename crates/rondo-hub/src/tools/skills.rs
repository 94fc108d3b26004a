//! The tools over the workspace's skills. One that is made in a chat is switched off until the owner has seen it.

use super::{Failure, Scope, arguments, failed, invalid, outcome};
use crate::outgoing;
use async_trait::async_trait;
use data_encoding::HEXLOWER;
use rondo_core::{Tool, ToolInvocation};
use rondo_runtime::files::{Readers, replace_file};
use rondo_tools::context_files::{ContextFiles, WORKSPACE_SKILLS};
use rondo_tools::skill_files::{SKILL_BYTES_MAX, SKILL_FILE, SkillFile, skill_file};
use rondo_tools::{SkillHead, check_skill_name};
use rondo_types::{
    Commit, Concurrency, Effects, Recovery, ToolHints, ToolKind, ToolOutcome, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Skills that may be in a workspace, those that are switched off included.
const SKILLS_MAX: usize = 200;
/// Prefix of the directory of a skill that is switched off.
const OFF: char = '.';
/// Digits of the hash that says which text the owner has seen.
const HASH_DIGITS: usize = 8;

/// Lists the skills: `list_skills {}`.
pub(super) struct ListSkills(pub(super) Arc<Scope>);
/// Reads a skill: `read_skill {name}`.
pub(super) struct ReadSkill(pub(super) Arc<Scope>);
/// Makes or changes a skill, switched off: `create_skill {name, description, text}`.
pub(super) struct CreateSkill(pub(super) Arc<Scope>);
/// Deletes a skill: `delete_skill {name}`.
pub(super) struct DeleteSkill(pub(super) Arc<Scope>);

#[derive(Deserialize)]
struct DeleteArguments {
    name: String,
}

#[derive(Deserialize)]
struct SkillArguments {
    name: String,
    description: String,
    text: String,
}

/// A skill that was made in a chat and is switched off.
struct SkillChange {
    /// Text of the skill.
    text: String,
    /// The text of the skill that it replaces, if there is one.
    before: Option<String>,
}

fn spec(name: &str, description: &str, parameters: Value, effects: Effects) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        effects,
        concurrency: Concurrency::Exclusive,
        recovery: match effects {
            Effects::ReadOnly => Recovery::ReadOnly,
            Effects::Writes => Recovery::Idempotent,
        },
        kind: ToolKind::Other,
        hints: ToolHints::default(),
        ..ToolSpec::default()
    }
}

fn named() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    })
}

#[async_trait]
impl Tool for ListSkills {
    fn spec(&self) -> ToolSpec {
        let none = json!({"type": "object", "properties": {}});
        spec(
            "list_skills",
            "Lists the skills, and which are switched off.",
            none,
            Effects::ReadOnly,
        )
    }

    async fn call(&self, _: ToolInvocation) -> ToolOutcome {
        match self.0.workspace(|workspace| Ok(listed(&workspace))).await {
            Ok(skills) => ToolOutcome::json(json!({ "skills": skills })),
            Err(failure) => failure.into(),
        }
    }
}

#[async_trait]
impl Tool for ReadSkill {
    fn spec(&self) -> ToolSpec {
        let description = "Reads a skill: instructions for a particular task. Read it before you begin that task.";
        spec("read_skill", description, named(), Effects::ReadOnly)
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let read = async {
            let DeleteArguments { name } = arguments(invocation.arguments)?;
            self.0
                .workspace(move |workspace| read_on(&workspace, &name))
                .await
        };
        match read.await {
            Ok(text) => ToolOutcome::text(text),
            Err(failure) => failure.into(),
        }
    }
}

#[async_trait]
impl Tool for CreateSkill {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Lower-case letters, digits and single hyphens."},
                "description": {"type": "string", "description": "What it is for and when to use it, in a sentence."},
                "text": {"type": "string", "description": "The instructions, as Markdown."},
            },
            "required": ["name", "description", "text"],
        });
        let description = "Writes a skill: instructions for a recurring task. It stays switched off until the owner has seen it and switches it on.";
        spec("create_skill", description, parameters, Effects::Writes)
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        outcome(self.create(invocation).await)
    }
}

impl CreateSkill {
    async fn create(&self, invocation: ToolInvocation) -> Result<ToolOutcome, Failure> {
        let new: SkillArguments = arguments(invocation.arguments)?;
        let (name, text) = written(new).map_err(invalid)?;
        let hash = digest_of(&text);
        let shown = format!(
            "The skill `{name}` was written and is switched off. It says:\n\n{text}\n\nTo switch it on: `/skills enable {name} {hash}`"
        );
        let kept = name.clone();
        self.0
            .workspace(move |workspace| put_off(&workspace, &name, &text))
            .await?;
        let key = format!("skill:{}", invocation.idempotency_key);
        let notice = outgoing::notice(key, &self.0.chat.key, shown);
        Ok(ToolOutcome::Ok(ToolOutput {
            value: Value::String(format!(
                "`{kept}` is written and switched off. The owner was shown it, with the command that switches it on."
            )),
            effects: Box::new(Commit::sending(notice.within_bounds())),
            ..ToolOutput::default()
        }))
    }
}

#[async_trait]
impl Tool for DeleteSkill {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            kind: ToolKind::Delete,
            ..spec("delete_skill", "Deletes a skill.", named(), Effects::Writes)
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let delete = async {
            let DeleteArguments { name } = arguments(invocation.arguments)?;
            let shown = name.clone();
            self.0
                .workspace(move |workspace| delete(&workspace, &name))
                .await
                .map(|()| shown)
        };
        match delete.await {
            Ok(name) => ToolOutcome::text(format!("`{name}` is deleted.")),
            Err(failure) => failure.into(),
        }
    }
}

impl Scope {
    /// Does something with the workspace on a thread that may wait for the disk.
    async fn workspace<T: Send + 'static>(
        &self,
        work: impl FnOnce(PathBuf) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Failure> {
        let workspace = self.core()?.workspace();
        let worked = tokio::task::spawn_blocking(move || work(workspace)).await;
        worked.map_err(failed)?.map_err(failed)
    }
}

/// Returns the skills of a workspace as JSON, those that are switched off last.
fn listed(workspace: &Path) -> Vec<Value> {
    let on = ContextFiles::read(workspace).skills.into_iter();
    let on = on.map(|it| json!({"name": it.name, "description": it.description, "on": true}));
    let off = off(workspace).into_iter().map(|name| {
        let description = head(workspace, &name, true).map(|it| it.description);
        json!({"name": name, "description": description.unwrap_or_default(), "on": false})
    });
    on.chain(off).collect()
}

/// Returns the names of those that are switched off.
fn off(workspace: &Path) -> Vec<String> {
    let entries = fs::read_dir(workspace.join(WORKSPACE_SKILLS));
    let names = entries.into_iter().flatten().take(SKILLS_MAX * 2);
    let names = names.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter_map(|it| it.strip_prefix(OFF).map(str::to_owned))
        .filter(|it| check_skill_name(it).is_ok())
        .collect();
    names.sort_unstable();
    names
}

fn file(workspace: &Path, name: &str, is_off: bool) -> Option<SkillFile> {
    check_skill_name(name).ok()?;
    let folder = match is_off {
        true => format!("{OFF}{name}"),
        false => name.to_owned(),
    };
    let mut file = skill_file(workspace, Path::new(WORKSPACE_SKILLS), &folder)?;
    file.folder = name.to_owned();
    Some(file)
}

fn head(workspace: &Path, name: &str, is_off: bool) -> Option<SkillHead> {
    SkillHead::of(&file(workspace, name, is_off)?).ok()
}

fn read_on(workspace: &Path, name: &str) -> Result<String, String> {
    let known =
        || format!("there is no skill `{name}` that is switched on; `list_skills` lists them");
    let file = file(workspace, name, false).ok_or_else(known)?;
    SkillHead::of(&file).map_err(|why| format!("`{name}` is not a skill: {why}"))?;
    let cut = if file.is_cut {
        "\n[the rest is left out]"
    } else {
        ""
    };
    Ok(format!("{}{cut}", file.text))
}

/// Returns the content of a skill that is switched off, and of the one that it would replace.
fn read_any(workspace: &Path, name: &str) -> Option<SkillChange> {
    let text = file(workspace, name, true)?.text;
    let before = file(workspace, name, false).map(|it| it.text);
    Some(SkillChange { text, before })
}

/// Returns the hash by which a text is named.
fn digest_of(text: &str) -> String {
    let mut hash = HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
    hash.truncate(HASH_DIGITS);
    hash
}

/// Checks a new skill, and returns its name and the text of its file.
fn written(new: SkillArguments) -> Result<(String, String), String> {
    check_skill_name(&new.name).map_err(|why| format!("`{}`: {why}", new.name))?;
    let description = new
        .description
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if description.is_empty() {
        return Err("a skill needs a `description`".to_owned());
    }
    let description = serde_json::to_string(&description).map_err(|error| error.to_string())?;
    let text = format!(
        "---\nname: {}\ndescription: {description}\n---\n\n{}\n",
        new.name,
        new.text.trim()
    );
    match u64::try_from(text.len()).is_ok_and(|bytes| bytes <= SKILL_BYTES_MAX) {
        true => Ok((new.name, text)),
        false => Err(format!("a skill has at most {SKILL_BYTES_MAX} bytes")),
    }
}

/// Writes a skill that is switched off; the one that is on stays as it is.
fn put_off(workspace: &Path, name: &str, text: &str) -> Result<(), String> {
    let known = listed(workspace).len();
    if known >= SKILLS_MAX && file(workspace, name, true).is_none() {
        return Err(format!(
            "there are {SKILLS_MAX} skills already; delete some"
        ));
    }
    let folder = workspace
        .join(WORKSPACE_SKILLS)
        .join(format!("{OFF}{name}"));
    let put = fs::create_dir_all(&folder).and_then(|()| replace(&folder.join(SKILL_FILE), text));
    put.map_err(|error| format!("`{name}` cannot be written: {error}"))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_file(path, text.as_bytes(), Readers::AsBefore)
}

/// Switches a skill on, if it says what the owner has seen.
///
/// # Errors
/// Says why not.
fn enable(workspace: &Path, name: &str, hash: &str) -> Result<(), String> {
    let change = read_any(workspace, name);
    let change =
        change.ok_or_else(|| format!("there is no skill `{name}` that is switched off"))?;
    if digest_of(&change.text) != hash {
        return Err(format!(
            "`{name}` has changed: look at it with `/skills show {name}`"
        ));
    }
    let skills = workspace.join(WORKSPACE_SKILLS);
    let on = skills.join(name);
    let moved = fs::create_dir_all(&on)
        .and_then(|()| replace(&on.join(SKILL_FILE), &change.text))
        .and_then(|()| fs::remove_dir_all(skills.join(format!("{OFF}{name}"))));
    moved.map_err(|error| format!("`{name}` cannot be switched on: {error}"))
}

fn delete(workspace: &Path, name: &str) -> Result<(), String> {
    check_skill_name(name).map_err(|why| format!("`{name}`: {why}"))?;
    let skills = workspace.join(WORKSPACE_SKILLS);
    let mut is_found = false;
    for folder in [skills.join(name), skills.join(format!("{OFF}{name}"))] {
        match fs::remove_dir_all(&folder) {
            Ok(()) => is_found = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("`{name}` cannot be deleted: {error}")),
        }
    }
    match is_found {
        true => Ok(()),
        false => Err(format!("there is no skill `{name}`")),
    }
}

/// Does what `/skills` says, and returns the answer.
pub(crate) fn skills_command(workspace: &Path, rest: &str) -> String {
    let words: Vec<&str> = rest.split_whitespace().collect();
    match *words.as_slice() {
        [] => all_in_words(workspace),
        ["show", name] => shown(workspace, name),
        ["enable", name, hash] => match enable(workspace, name, hash) {
            Ok(()) => format!("`{name}` is switched on."),
            Err(why) => format!("Not done: {why}."),
        },
        _ => "Use /skills, /skills show NAME, or /skills enable NAME HASH.".to_owned(),
    }
}

fn all_in_words(workspace: &Path) -> String {
    let lines = listed(workspace).into_iter().map(|skill| {
        let text = |key: &str| {
            skill
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let is_on = skill.get("on").and_then(Value::as_bool) == Some(true);
        let off = if is_on {
            ""
        } else {
            " (switched off: /skills show it)"
        };
        format!("- `{}`{off}: {}", text("name"), text("description"))
    });
    let lines: Vec<String> = lines.collect();
    match lines.is_empty() {
        true => "There are no skills.".to_owned(),
        false => lines.join("\n"),
    }
}

fn shown(workspace: &Path, name: &str) -> String {
    let Some(change) = read_any(workspace, name) else {
        return read_on(workspace, name).unwrap_or_else(|why| format!("Not done: {why}."));
    };
    let heading = match change.before {
        Some(before) if before == change.text => {
            "It says the same as the one that is on.".to_owned()
        }
        Some(before) => format!("It replaces this one:\n\n{before}\n\nwith this one:"),
        None => "It is new:".to_owned(),
    };
    format!(
        "{heading}\n\n{}\n\nTo switch it on: `/skills enable {name} {}`",
        change.text,
        digest_of(&change.text)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(name: &str, text: &str) -> Result<(String, String), String> {
        written(SkillArguments {
            name: name.to_owned(),
            description: "Makes tea:\nwell".to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn a_skill_that_is_written_is_off_until_what_was_seen_is_switched_on() {
        let dir = tempfile::tempdir().unwrap();
        let (name, text) = new("tea", "Boil water.").unwrap();
        put_off(dir.path(), &name, &text).unwrap();
        assert_eq!(ContextFiles::read(dir.path()).skills, []);
        assert!(read_on(dir.path(), "tea").is_err());
        let listed = listed(dir.path());
        assert_eq!(
            listed,
            [json!({"name": "tea", "description": "Makes tea: well", "on": false})]
        );

        let hash = digest_of(&text);
        put_off(dir.path(), "tea", &text.replace("Boil", "Steal")).unwrap();
        assert!(
            enable(dir.path(), "tea", &hash)
                .unwrap_err()
                .contains("has changed")
        );
        put_off(dir.path(), "tea", &text).unwrap();
        enable(dir.path(), "tea", &hash).unwrap();
        assert_eq!(read_on(dir.path(), "tea").unwrap(), text);
        assert_eq!(ContextFiles::read(dir.path()).skills.len(), 1);

        // A change of it leaves the one that is on as it is.
        let (_, changed) = new("tea", "Boil milk.").unwrap();
        put_off(dir.path(), "tea", &changed).unwrap();
        assert_eq!(read_on(dir.path(), "tea").unwrap(), text);
        let change = read_any(dir.path(), "tea").unwrap();
        assert_eq!((change.text, change.before), (changed, Some(text)));

        delete(dir.path(), "tea").unwrap();
        assert!(delete(dir.path(), "tea").is_err());
        assert_eq!(super::listed(dir.path()), Vec::<Value>::new());
    }

    #[test]
    fn names_lead_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["", ".", "..", "../x", "a/b", ".tea", "Tea", "a--b", "tea\n"] {
            assert!(new(name, "x").is_err(), "{name:?}");
            assert!(delete(dir.path(), name).is_err(), "{name:?}");
            assert!(read_on(dir.path(), name).is_err(), "{name:?}");
            assert!(enable(dir.path(), name, "x").is_err(), "{name:?}");
        }
        let max = usize::try_from(SKILL_BYTES_MAX).unwrap();
        assert!(new("tea", &"x".repeat(max)).is_err());
    }
}
