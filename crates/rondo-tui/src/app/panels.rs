//! Panels of lists: sessions, what was typed before, models, the to-do list.

use super::{App, Effect, Layer};
use crate::prompt::Editor;
use crate::prompt::slash::Command;
use crate::prompt::spelled;
use crate::text::clean;
use crate::transcript::Quote;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rondo_runtime::service::KeptSession;
use rondo_types::{Message, Role, SessionId};

/// Sessions that the panel lists.
pub(crate) const LISTED_MAX: usize = 50;
/// Lines of what was typed before that are listed.
const RECALLED_MAX: usize = 50;
/// Characters of a message in a preview.
const PREVIEW_CHARS_MAX: usize = 400;

/// The panel of sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// What is looked for.
    pub(super) words: Editor,
    pub(super) found: Vec<KeptSession>,
    pub(super) at: usize,
    /// The last messages of the chosen one.
    pub(super) preview: Option<(SessionId, Vec<String>)>,
    /// Those that are removed when the panel is closed.
    pub(super) removed: Vec<SessionId>,
    /// A new title for the chosen one, while it is typed.
    pub(super) title: Option<Editor>,
}

impl Sessions {
    pub(super) fn chosen(&self) -> Option<&KeptSession> {
        self.found.get(self.at)
    }

    fn step(&mut self, goes_up: bool) -> Vec<Effect> {
        let last = self.found.len().saturating_sub(1);
        self.at = match goes_up {
            true => self.at.saturating_sub(1),
            false => (self.at + 1).min(last),
        };
        self.look()
    }

    fn look(&self) -> Vec<Effect> {
        let chosen = self.chosen().map(|it| Effect::Preview(it.info.id.clone()));
        chosen.into_iter().collect()
    }
}

/// The panel of what was typed before, or of models.
#[derive(Debug, Default)]
pub(crate) struct Recall {
    pub(super) words: Editor,
    pub(super) found: Vec<String>,
    pub(super) at: usize,
    /// The models to choose from; none where lines are looked for.
    pub(super) models: Option<Vec<String>>,
}

impl Recall {
    /// Returns what stands above the panel.
    pub(super) fn title(&self) -> &'static str {
        match self.models {
            Some(_) => "models · Enter chooses one for the next turn · Esc closes",
            None => "typed before · Enter takes it · Esc closes",
        }
    }
}

impl App {
    pub(super) fn sessions(&mut self) -> Vec<Effect> {
        self.layer = Layer::Sessions(Box::default());
        vec![Effect::List(String::new())]
    }

    /// The sessions that were looked for.
    pub(crate) fn found(&mut self, words: &str, found: Vec<KeptSession>) -> Vec<Effect> {
        let Layer::Sessions(panel) = &mut self.layer else {
            return Vec::new();
        };
        if panel.words.text() != words {
            return Vec::new();
        }
        panel.found = found;
        panel.at = panel.at.min(panel.found.len().saturating_sub(1));
        panel.look()
    }

    /// The last messages of a session.
    pub(crate) fn previews(&mut self, session: SessionId, messages: &[Message]) {
        if let Layer::Sessions(panel) = &mut self.layer {
            let line = |it: &Message| {
                let mark = if it.role == Role::User { "› " } else { "  " };
                // What went along is of no help to tell sessions apart.
                let text = match it.role {
                    Role::User => Quote::split(it).0,
                    _ => it.text(),
                };
                let text: String = text.chars().take(PREVIEW_CHARS_MAX).collect();
                format!("{mark}{}", clean::line(&text))
            };
            let lines = messages.iter().map(line);
            let lines = lines.filter(|it| !it.trim_end_matches([' ', '›']).is_empty());
            panel.preview = Some((session, lines.collect()));
        }
    }

    pub(super) fn sessions_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        let Layer::Sessions(panel) = &mut self.layer else {
            return Vec::new();
        };
        let spelled = spelled(key).unwrap_or_default();
        if let Some(title) = &mut panel.title {
            match spelled.as_str() {
                "Esc" | "Ctrl-C" => panel.title = None,
                "Enter" => {
                    let text = title.take();
                    panel.title = None;
                    let words = panel.words.text().to_owned();
                    let chosen = panel.chosen().map(|it| it.info.id.clone());
                    let rename = chosen.map(|id| Effect::Rename { id, text, words });
                    return rename.into_iter().collect();
                }
                spelled => type_in(title, key, spelled),
            }
            return Vec::new();
        }
        match spelled.as_str() {
            "Esc" | "Ctrl-C" => return self.close_sessions(),
            "Up" | "Ctrl-P" => return panel.step(true),
            "Down" | "Ctrl-N" => return panel.step(false),
            "Ctrl-D" | "Delete" => {
                if let Some(id) = panel.chosen().map(|it| it.info.id.clone()) {
                    match panel.removed.iter().position(|it| *it == id) {
                        Some(at) => drop(panel.removed.remove(at)),
                        None => panel.removed.push(id),
                    }
                }
            }
            "Ctrl-E" | "F2" => {
                let title = panel.chosen().map(|it| it.info.title.clone());
                panel.title = title.map(|it| {
                    let mut editor = Editor::default();
                    editor.set(&it);
                    editor
                });
            }
            "Enter" | "Ctrl-B" => {
                let chosen = panel.chosen().map(|it| it.info.id.to_string());
                let Some(id) =
                    chosen.filter(|it| panel.removed.iter().all(|gone| gone.as_str() != it))
                else {
                    return Vec::new();
                };
                let mut effects = self.close_sessions();
                effects.push(match spelled.as_str() {
                    "Enter" => Effect::Command {
                        command: Command::Resume,
                        rest: id,
                    },
                    _ => Effect::ForkOf(id),
                });
                return effects;
            }
            spelled => {
                let before = panel.words.text().to_owned();
                type_in(&mut panel.words, key, spelled);
                if panel.words.text() != before {
                    panel.at = 0;
                    return vec![Effect::List(panel.words.text().to_owned())];
                }
            }
        }
        Vec::new()
    }

    /// What was to be removed is removed now: until then it could be taken back.
    fn close_sessions(&mut self) -> Vec<Effect> {
        let Layer::Sessions(panel) = std::mem::take(&mut self.layer) else {
            return Vec::new();
        };
        panel.removed.into_iter().map(Effect::Remove).collect()
    }

    /// Opens the panel of models.
    pub(crate) fn choose_model(&mut self, models: Vec<String>) {
        self.layer = Layer::Recall(Box::new(Recall {
            models: Some(models),
            ..Recall::default()
        }));
        self.look_in_history();
    }

    pub(super) fn search_history(&mut self) {
        self.layer = Layer::Recall(Box::default());
        self.look_in_history();
    }

    fn look_in_history(&mut self) {
        let Layer::Recall(panel) = &mut self.layer else {
            return;
        };
        let words = panel.words.text().to_lowercase();
        if let Some(models) = &panel.models {
            let found = models
                .iter()
                .filter(|it| it.to_lowercase().contains(&words));
            panel.found = found.cloned().collect();
            panel.at = 0;
            return;
        }
        let mut found: Vec<String> = Vec::new();
        for at in (0..self.history.len()).rev() {
            let Some(line) = self.history.spelled(at, self.language) else {
                continue;
            };
            if line.to_lowercase().contains(&words) && !found.contains(&line) {
                found.push(line);
            }
            if found.len() >= RECALLED_MAX {
                break;
            }
        }
        panel.found = found;
        panel.at = 0;
    }

    pub(super) fn recall_key(&mut self, key: &KeyEvent) -> Vec<Effect> {
        let Layer::Recall(panel) = &mut self.layer else {
            return Vec::new();
        };
        let spelled = spelled(key).unwrap_or_default();
        let last = panel.found.len().saturating_sub(1);
        match spelled.as_str() {
            "Esc" | "Ctrl-C" => self.layer = Layer::None,
            "Down" | "Ctrl-N" | "Ctrl-R" => panel.at = (panel.at + 1).min(last),
            "Up" | "Ctrl-P" => panel.at = panel.at.saturating_sub(1),
            "Enter" | "Tab" => {
                let line = panel.found.get(panel.at).cloned();
                let is_model = panel.models.is_some();
                self.layer = Layer::None;
                match line {
                    Some(model) if is_model => {
                        return vec![Effect::Command {
                            command: Command::Model,
                            rest: model,
                        }];
                    }
                    Some(line) => self.editor.set(&line),
                    None => {}
                }
            }
            spelled => {
                type_in(&mut panel.words, key, spelled);
                self.look_in_history();
            }
        }
        Vec::new()
    }
}

/// Types a key into a line.
fn type_in(editor: &mut Editor, key: &KeyEvent, spelled: &str) {
    let has_others = key
        .modifiers
        .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
    match (spelled, key.code) {
        ("Backspace", _) => editor.backspace(),
        ("Ctrl-U", _) => editor.cut_to_start(),
        ("Ctrl-W", _) => editor.cut_word_left(),
        ("Left", _) => editor.left(),
        ("Right", _) => editor.right(),
        (_, KeyCode::Char(c)) if !has_others => editor.insert(c.encode_utf8(&mut [0; 4])),
        _ => {}
    }
}
