//! Calls a person who looks at another window, as the settings say, and shows where the session works.

use super::Runner;
use crate::app::Notice;
use crate::options::Notify;
use rondo_runtime::terminal::branch;
use std::path::Path;

/// Columns of a directory in the status line; of a longer one its last name is shown.
const DIRECTORY_COLUMNS_MAX: usize = 20;

impl Runner {
    /// Returns the sequence that calls a person, or the one after they came.
    pub(super) fn attention(&mut self) -> Vec<u8> {
        let notice = self.app.take_notice().filter(|_| !self.is_behind);
        let notify = self.app.options.notify;
        let name = self.settings.directory.file_name();
        let name = name.map_or_else(String::new, |it| it.to_string_lossy().into_owned());
        let is_marked = std::mem::take(&mut self.is_title_marked);
        match (notice, notify) {
            (Some(_), Notify::Title) => self.is_title_marked = true,
            (None, Notify::Title) if is_marked && !self.app.has_focus() => {
                self.is_title_marked = true;
                return Vec::new();
            }
            (None, Notify::Title) if is_marked || !std::mem::replace(&mut self.has_title, true) => {
                return title(&format!("rondo · {name}")).into_bytes();
            }
            _ => {}
        }
        notice.map_or_else(Vec::new, |it| call(notify, it, &name).into_bytes())
    }

    /// Shows the directory and its branch as they are now.
    pub(super) fn show_place(&mut self) {
        let directory = &self.settings.directory;
        let home = self.settings.env.get("HOME").map(Path::new);
        let shown = shown_directory(directory, home);
        self.app.set_place(&shown, branch(directory).as_deref());
    }
}

/// Returns the bytes that call a person.
fn call(notify: Notify, notice: Notice, name: &str) -> String {
    let words = notice.words();
    let name = plain(name);
    match notify {
        Notify::Off => String::new(),
        Notify::Bell => "\x07".to_owned(),
        Notify::Title => title(&format!("● {words} · rondo · {name}")),
        Notify::Osc9 => format!("\x1b]9;rondo · {name}: {words}\x1b\\"),
        Notify::Osc777 => format!("\x1b]777;notify;rondo · {name};{words}\x1b\\"),
    }
}

fn title(text: &str) -> String {
    format!("\x1b]2;{}\x1b\\", plain(text))
}

/// Returns a text in which nothing ends a sequence of the terminal or one of its fields.
fn plain(text: &str) -> String {
    text.replace(|c: char| c.is_control() || c == ';', " ")
}

/// Returns a directory as a person names it, from their home on, or its last name if that is long.
fn shown_directory(directory: &Path, home: Option<&Path>) -> String {
    let beneath = home.and_then(|it| directory.strip_prefix(it).ok());
    let whole = match beneath {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => directory.display().to_string(),
    };
    if whole.chars().count() <= DIRECTORY_COLUMNS_MAX {
        return whole;
    }
    let name = directory.file_name().unwrap_or_default();
    format!("…/{}", name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_called_in_the_way_that_was_chosen() {
        let called = |notify| call(notify, Notice::Asks, "a;b\u{1b}");
        assert_eq!(called(Notify::Off), "");
        assert_eq!(called(Notify::Bell), "\x07");
        assert_eq!(
            called(Notify::Title),
            "\x1b]2;● a question waits · rondo · a b \x1b\\"
        );
        assert_eq!(
            called(Notify::Osc9),
            "\x1b]9;rondo · a b : a question waits\x1b\\"
        );
        assert_eq!(
            called(Notify::Osc777),
            "\x1b]777;notify;rondo · a b ;a question waits\x1b\\"
        );
    }

    #[test]
    fn a_directory_is_named_from_home_on_and_a_long_one_by_its_last_name() {
        let shown = |path: &str| shown_directory(Path::new(path), Some(Path::new("/home/me")));
        assert_eq!(shown("/home/me"), "~");
        assert_eq!(shown("/home/me/notes"), "~/notes");
        assert_eq!(shown("/srv/www"), "/srv/www");
        assert_eq!(shown("/home/me/some/where/deep/below"), "…/below");
    }
}
