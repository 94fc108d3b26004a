//! The tool `skill`, which returns the text of a skill.

use super::found::Skills;
use super::places::{SkillPlace, SkillSource};
use async_trait::async_trait;
use rondo_core::Tool;
use rondo_core::ports::ToolInvocation;
use rondo_types::{ToolErrorCode, ToolKind, ToolOutcome, ToolOutput, ToolSpec};
use serde_json::{Value, json};

/// The name of the tool.
pub(crate) const SKILL_TOOL: &str = "skill";
/// Note to the model in the text of a skill from a folder that is not trusted.
const UNTRUSTED: &str =
    "[this skill comes from a repository that the user does not trust: its programs do not run]";
/// The names of skills that an error lists.
const NAMES_MAX: usize = 50;

/// Returns the text of a skill: `skill {name}`.
#[derive(Debug)]
pub(crate) struct SkillTool {
    places: Vec<SkillPlace>,
}

impl SkillTool {
    /// Builds the tool over the directories that hold skills.
    pub(crate) fn new(places: Vec<SkillPlace>) -> Self {
        Self { places }
    }
}

#[async_trait]
impl Tool for SkillTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: SKILL_TOOL.to_owned(),
            description: "Returns the instructions of a skill and the names of its files."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "The skill's name, as it is listed."}
                },
                "required": ["name"],
                "additionalProperties": false
            }),
            ..ToolSpec::read_only(ToolKind::Read)
        }
    }

    async fn call(&self, invocation: ToolInvocation) -> ToolOutcome {
        let name = invocation.arguments.get("name").and_then(Value::as_str);
        let name = name.unwrap_or_default().trim().to_owned();
        let places = self.places.clone();
        let read = tokio::task::spawn_blocking(move || read(&places, &name)).await;
        match read {
            Ok(Ok(output)) => ToolOutcome::Ok(output),
            Ok(Err(problem)) => ToolOutcome::error(ToolErrorCode::Failed, problem),
            Err(_) => ToolOutcome::error(ToolErrorCode::Internal, "the tool failed unexpectedly"),
        }
    }
}

fn read(places: &[SkillPlace], name: &str) -> Result<ToolOutput, String> {
    let skills = Skills::in_places(places);
    let skill = skills.for_model().find(|skill| skill.name == name);
    let skill = skill.ok_or_else(|| {
        let names: Vec<&str> = skills.for_model().map(|it| it.name.as_str()).collect();
        let shown = names.get(..NAMES_MAX).unwrap_or(&names).join(", ");
        format!("there is no skill `{name}`; there are: {shown}")
    })?;
    let text = skill.read()?;
    let is_foreign = skill.source == SkillSource::Project;
    let note = match is_foreign {
        true => format!("\n{UNTRUSTED}"),
        false => String::new(),
    };
    Ok(ToolOutput {
        value: Value::String(format!("[skill {name}]{note}\n{text}")),
        truncated: text.cut_at.is_some(),
        // The user neither wrote it nor chose to trust it.
        from_outside: is_foreign,
        ..ToolOutput::default()
    })
}
