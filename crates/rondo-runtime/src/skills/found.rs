//! The skills that can be used, and why others cannot.

use super::places::{SkillPlace, SkillSource, places};
use super::text::SkillText;
use crate::settings::Settings;
use rondo_context::ListedSkill;
use rondo_tools::SkillHead;
use rondo_tools::front_matter::FrontMatter;
use rondo_tools::skill_files::{SkillFile, files_beside, skill_file, skill_files, skill_path};
use std::path::PathBuf;

/// The bound on skills of all directories together.
const SKILLS_MAX: usize = 500;

/// A skill that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name, which is that of its directory.
    pub name: String,
    /// Purpose of the skill, at most 1,024 characters.
    pub description: String,
    /// Whose it is.
    pub source: SkillSource,
    /// Set if the model may use it by itself; `disable-model-invocation: true` forbids that.
    pub is_for_model: bool,
    place: SkillPlace,
}

/// A skill that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSkill {
    /// File of the skill.
    pub file: PathBuf,
    /// Problem with the file.
    pub problem: String,
}

/// The skills of the user and of the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    /// Those that can be used, by name.
    pub usable: Vec<Skill>,
    /// Those that cannot, in the order in which they were found.
    pub refused: Vec<RefusedSkill>,
}

impl Skills {
    /// Looks for skills where the settings say. Reads directories and files, which may take as long as the disk does.
    #[must_use]
    pub fn find(settings: &Settings) -> Self {
        Self::in_places(&places(settings))
    }

    pub(crate) fn in_places(places: &[SkillPlace]) -> Self {
        let mut found = Self::default();
        for place in places {
            for file in skill_files(&place.base, &place.below) {
                if found.usable.len() + found.refused.len() >= SKILLS_MAX {
                    break;
                }
                found.add(&file, place);
            }
        }
        found.usable.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    fn add(&mut self, file: &SkillFile, place: &SkillPlace) {
        let result = read(file, place).and_then(|skill| match self.get(&skill.name) {
            Some(other) => Err(format!(
                "`{}` has the same name and is used instead",
                other.file().display()
            )),
            None => Ok(skill),
        });
        match result {
            Ok(skill) => self.usable.push(skill),
            Err(problem) => self.refused.push(RefusedSkill {
                file: skill_path(&place.base, &place.below, &file.folder),
                problem,
            }),
        }
    }

    /// Returns a skill by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.usable.iter().find(|skill| skill.name == name)
    }

    /// Returns those that the model may use by itself.
    pub(crate) fn for_model(&self) -> impl Iterator<Item = &Skill> {
        self.usable.iter().filter(|skill| skill.is_for_model)
    }

    /// Returns the skills that the system prompt lists.
    pub(crate) fn listed(&self) -> Vec<ListedSkill> {
        let listed = self.for_model().map(|skill| ListedSkill {
            name: skill.name.clone(),
            description: skill.description.clone(),
            is_foreign: skill.source.is_of_project(),
        });
        listed.collect()
    }
}

impl Skill {
    /// Returns the path of its file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        skill_path(&self.place.base, &self.place.below, &self.name)
    }

    /// Returns its directory.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.place.path().join(&self.name)
    }

    /// Reads its text, at most 500 lines and 20,000 bytes, and the names of the files beside it.
    ///
    /// # Errors
    /// When its file is gone, or is not a skill any more.
    pub fn read(&self) -> Result<SkillText, String> {
        let place = &self.place;
        let file = skill_file(&place.base, &place.below, &self.name)
            .ok_or_else(|| format!("`{}` cannot be read", self.file().display()))?;
        let (beside, has_more) = files_beside(&place.base, &place.below, &self.name);
        let front = FrontMatter::parse(&file.text)?;
        let text = SkillText::new(&file.text, front.body, file.is_cut, &self.folder());
        Ok(text.with_files(beside, has_more))
    }
}

fn read(file: &SkillFile, place: &SkillPlace) -> Result<Skill, String> {
    let head = SkillHead::of(file)?;
    Ok(Skill {
        name: head.name,
        description: head.description,
        source: place.source,
        is_for_model: head.is_for_model,
        place: place.clone(),
    })
}

#[cfg(test)]
mod tests;
