//! The front matter of a `SKILL.md`: the skill's name, what it is for, and who may use it.

use crate::front_matter::FrontMatter;
use crate::skill_files::SkillFile;

/// The bound on a name, in bytes.
pub const SKILL_NAME_MAX: usize = 64;
/// The bound on a description, in characters; the rest is left out.
const DESCRIPTION_CHARS_MAX: usize = 1024;

/// Front matter of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillHead {
    /// Its name, which is that of its directory.
    pub name: String,
    /// Purpose of the skill, at most 1,024 characters.
    pub description: String,
    /// Set if the model may use it by itself; `disable-model-invocation: true` forbids that.
    pub is_for_model: bool,
}

impl SkillHead {
    /// Reads the front matter of a skill's file.
    ///
    /// # Errors
    /// Says why the file is not a skill.
    pub fn of(file: &SkillFile) -> Result<Self, String> {
        let front = FrontMatter::parse(&file.text)?;
        let name = front.text("name").ok_or("it has no `name`")?;
        check_skill_name(&name)?;
        if name != file.folder {
            return Err(format!(
                "its name `{name}` differs from the name of its directory, `{}`",
                file.folder
            ));
        }
        let description = front.text("description").ok_or("it has no `description`")?;
        Ok(Self {
            name,
            description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
            is_for_model: front.switch("disable-model-invocation") != Some(true),
        })
    }
}

/// Checks the name of a skill.
///
/// # Errors
/// When the name is invalid, with the form that a name must have.
pub fn check_skill_name(name: &str) -> Result<(), String> {
    let is_letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    let is_name = (1..=SKILL_NAME_MAX).contains(&name.len())
        && name.bytes().all(is_letter)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    match is_name {
        true => Ok(()),
        false => Err(format!(
            "its name must be up to {SKILL_NAME_MAX} lower-case letters, digits and single hyphens"
        )),
    }
}
