//! The directory that the prompt shows.

use std::path::Path;

/// Columns of a directory at most; its end says more than its beginning.
const DIRECTORY_CHARS_MAX: usize = 40;

/// Returns a directory with `~` for the home, its end alone where it is long.
pub(super) fn shown(directory: &Path, home: Option<&Path>) -> String {
    let text = match home.and_then(|home| directory.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => directory.display().to_string(),
    };
    let text = rondo_runtime::sanitize::plain(&text);
    let count = text.chars().count();
    if count <= DIRECTORY_CHARS_MAX {
        return text;
    }
    let end: String = text.chars().skip(count - DIRECTORY_CHARS_MAX + 1).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_short() {
        let home = Path::new("/home/me");
        let show = |path: &str| shown(Path::new(path), Some(home));
        assert_eq!(show("/home/me"), "~");
        assert_eq!(show("/home/me/a b"), "~/a b");
        assert_eq!(show("/home/mel"), "/home/mel");
        let long = format!("/{}", "x".repeat(60));
        assert_eq!(show(&long).chars().count(), DIRECTORY_CHARS_MAX);
    }
}
