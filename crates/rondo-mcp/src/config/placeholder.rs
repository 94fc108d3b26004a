//! Placeholders in the values of a server's configuration: `${VAR}`, `${VAR:-default}` and what other programs have.

use std::path::PathBuf;

/// The bound on a value once it is filled, in bytes.
const FILLED_BYTES_MAX: usize = 64 << 10;

/// Looks up a variable.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Permitted placeholders of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholders {
    /// `${VAR}` and `${VAR:-default}`; a variable that is not set and has no default is an error.
    Shell,
    /// `${env:VAR}`, `${workspaceFolder}`, `${userHome}`, `${input:id}`.
    Editor,
    /// `$VAR` and `${VAR}`; a variable that is not set is empty.
    Lenient,
    /// None: what looks like one is text.
    None,
}

/// Source of the values of placeholders.
#[derive(Clone, Copy)]
pub(super) struct Filling<'a> {
    pub(super) placeholders: Placeholders,
    pub(super) variables: Variables<'a>,
    /// The folder that the file belongs to.
    pub(super) folder: &'a PathBuf,
}

impl Filling<'_> {
    /// Fills the placeholders of a value.
    ///
    /// # Errors
    /// When a placeholder has no value, or the value is too long.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
        let filled = match self.placeholders {
            Placeholders::None => text.to_owned(),
            _ => self.filled(text)?,
        };
        match filled.len() > FILLED_BYTES_MAX {
            true => Err("a value is longer than 64 KiB".to_owned()),
            false => Ok(filled),
        }
    }

    fn filled(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let after = from.get(1..).unwrap_or_default();
            if let Some(inner) = after.strip_prefix('{')
                && let Some((name, remaining)) = inner.split_once('}')
            {
                out.push_str(&self.value(name)?);
                rest = remaining;
                continue;
            }
            let name = leading_name(after);
            if self.placeholders == Placeholders::Lenient && !name.is_empty() {
                out.push_str(&(self.variables)(name).unwrap_or_default());
                rest = after.get(name.len()..).unwrap_or_default();
                continue;
            }
            out.push('$');
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn value(&self, placeholder: &str) -> Result<String, String> {
        match self.placeholders {
            Placeholders::Editor => self.of_editor(placeholder),
            Placeholders::Lenient => Ok((self.variables)(placeholder).unwrap_or_default()),
            Placeholders::Shell | Placeholders::None => {
                let (name, default) = match placeholder.split_once(":-") {
                    Some((name, default)) => (name, Some(default)),
                    None => (placeholder, None),
                };
                let set = (self.variables)(name).filter(|it| !it.is_empty() || default.is_none());
                set.or_else(|| default.map(str::to_owned))
                    .ok_or_else(|| format!("the variable `{}` is not set", shown(name)))
            }
        }
    }

    fn of_editor(&self, placeholder: &str) -> Result<String, String> {
        let folder = || self.folder.display().to_string();
        match placeholder.split_once(':') {
            Some(("env", name)) => Ok((self.variables)(name).unwrap_or_default()),
            Some(("input", name)) => {
                let name = shown(name);
                Err(format!(
                    "`${{input:{name}}}` works only in editors; write `${{env:NAME}}`"
                ))
            }
            None if placeholder == "workspaceFolder" => Ok(folder()),
            None if placeholder == "workspaceFolderBasename" => {
                let name = self.folder.file_name().unwrap_or_default();
                Ok(name.to_string_lossy().into_owned())
            }
            None if placeholder == "userHome" => {
                (self.variables)("HOME").ok_or_else(|| "there is no home directory".to_owned())
            }
            None if matches!(placeholder, "pathSeparator" | "/") => Ok("/".to_owned()),
            Some(_) | None => {
                let name = shown(placeholder);
                Err(format!("the placeholder `${{{name}}}` is not known"))
            }
        }
    }
}

fn leading_name(text: &str) -> &str {
    let end = text.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_'));
    let name = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    match name.starts_with(|it: char| it.is_ascii_digit()) {
        true => "",
        false => name,
    }
}

fn shown(name: &str) -> String {
    rondo_core::shown::line(&name.chars().take(100).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(placeholders: Placeholders, text: &str, expected: Result<&str, &str>) {
        let variables = |name: &str| match name {
            "A" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/h".to_owned()),
            _ => None,
        };
        let filling = Filling {
            placeholders,
            variables: &variables,
            folder: &PathBuf::from("/w/p"),
        };
        let filled = filling.fill(text);
        assert_eq!(
            filled.as_deref().map_err(String::as_str),
            expected,
            "{text}"
        );
    }

    #[test]
    fn shell_placeholders_have_defaults() {
        let shell = |text, expected| check(Placeholders::Shell, text, expected);
        shell("x${A}y${A}", Ok("xaya"));
        shell("${B:-b}-${B:-}-${EMPTY:-e}-${EMPTY}", Ok("b--e-"));
        shell("$A ${A", Ok("$A ${A"));
        shell("100$", Ok("100$"));
        shell("${B}", Err("the variable `B` is not set"));
        shell("${\u{1b}[2J}", Err("the variable `\\u{1b}[2J` is not set"));
        shell("${A:-${B}}", Ok("a}"));
    }

    #[test]
    fn editors_have_their_own() {
        let editor = |text, expected| check(Placeholders::Editor, text, expected);
        editor("${env:A}${env:B}", Ok("a"));
        editor(
            "${workspaceFolder}${/}x ${workspaceFolderBasename} ${userHome}",
            Ok("/w/p/x p /h"),
        );
        editor(
            "${input:key}",
            Err("`${input:key}` works only in editors; write `${env:NAME}`"),
        );
        editor(
            "${command:x}",
            Err("the placeholder `${command:x}` is not known"),
        );
    }

    #[test]
    fn the_lenient_leave_out_what_is_not_set() {
        let lenient = |text, expected| check(Placeholders::Lenient, text, expected);
        lenient("$A-${A}-$B-${B}-$1-$", Ok("a-a---$1-$"));
        check(Placeholders::None, "${A}", Ok("${A}"));
    }

    #[test]
    fn a_value_is_bounded() {
        let filled = |bytes: usize| {
            let text = "x".repeat(bytes);
            let filling = Filling {
                placeholders: Placeholders::Shell,
                variables: &|_| None,
                folder: &PathBuf::new(),
            };
            filling.fill(&text).is_ok()
        };
        assert!(filled(FILLED_BYTES_MAX - 1));
        assert!(filled(FILLED_BYTES_MAX));
        assert!(!filled(FILLED_BYTES_MAX + 1));
    }
}
