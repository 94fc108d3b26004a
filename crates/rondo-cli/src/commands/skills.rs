//! `rondo skills`: lists the skills that count in this folder, and prints one.

use super::report::write_failed;
use crate::cli::{SkillsArgs, SkillsCommand};
use crate::error::{CliError, Result};
use crate::exit::Exit;
use crate::output::Output;
use rondo_core::shown;
use rondo_runtime::settings::Settings;
use rondo_runtime::skills::{Skill, Skills};
use std::fmt::Write as _;

/// Message if there are none.
const NONE: &str = "no skills: none is in `skills` of Rondo's configuration directory, in `~/.agents/skills`, in \
                    `~/.claude/skills`, or in `.rondo/skills`, `.agents/skills` or `.claude/skills` of this folder\n";

/// Runs the command.
pub(super) fn run(args: &SkillsArgs, settings: &Settings, output: &Output) -> Result<Exit> {
    let skills = Skills::find(settings);
    let text = match &args.command {
        SkillsCommand::List => list(&skills),
        SkillsCommand::Show { name } => show(find(&skills, name)?)?,
    };
    output.words(&text).map_err(write_failed)?;
    Ok(Exit::Answer)
}

/// Returns a skill by name.
///
/// # Errors
/// When there is none; the error names those that there are.
pub(crate) fn find<'a>(skills: &'a Skills, name: &str) -> Result<&'a Skill> {
    skills.get(name).ok_or_else(|| {
        let error = CliError::new(Exit::Usage, format_args!("there is no skill `{name}`"));
        let names: Vec<&str> = skills.usable.iter().map(|it| it.name.as_str()).collect();
        match names.is_empty() {
            true => error.hint(NONE.trim_end()),
            false => error.hint(format!("the skills are: {}", names.join(", "))),
        }
    })
}

/// Returns a line for each skill, and one for each that cannot be used.
pub(crate) fn list(skills: &Skills) -> String {
    let usable = &skills.usable;
    let names = usable.iter().map(|skill| skill.name.len()).max();
    let sources = usable.iter().map(|skill| skill.source.to_string().len());
    let (names, sources) = (names.unwrap_or_default(), sources.max().unwrap_or_default());
    let mut text = String::new();
    for skill in usable {
        let source = skill.source.to_string();
        let description = shown::readable_line(&skill.description);
        let note = match skill.is_for_model {
            true => "",
            false => " [only when you ask for it]",
        };
        let _ = writeln!(
            text,
            "{:names$}  {source:sources$}  {description}{note}",
            skill.name
        );
    }
    for refused in &skills.refused {
        let file = shown::line(&refused.file.display().to_string());
        let problem = shown::line(&refused.problem);
        let _ = writeln!(text, "not used: {file}: {problem}");
    }
    match text.is_empty() {
        true => NONE.to_owned(),
        false => text,
    }
}

fn show(skill: &Skill) -> Result<String> {
    let read = skill.read();
    let read = read.map_err(|problem| CliError::new(Exit::Input, problem))?;
    let file = shown::line(&skill.file().display().to_string());
    let text = read.to_string();
    Ok(format!("{file} ({})\n\n{text}\n", skill.source))
}
