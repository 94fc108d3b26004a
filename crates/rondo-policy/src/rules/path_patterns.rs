//! The patterns of files in rules.

use super::RuleDirs;
use glob::Pattern;
use std::path::{Path, PathBuf};

/// Patterns are compared with absolute paths.
pub(super) fn path_pattern(text: &str, dirs: RuleDirs<'_>) -> Result<Pattern, String> {
    let absolute = match (text.strip_prefix("~/"), dirs.home) {
        (Some(rest), Some(home)) => below(home, rest),
        (Some(_), None) => return Err(format!("`{text}` needs a home directory")),
        (None, _) if text.starts_with('/') => text.to_owned(),
        (None, _) => below(dirs.working, text),
    };
    Pattern::new(&absolute).map_err(|err| format!("`{text}` is not a pattern of paths: {err}"))
}

/// The directory's own name is not a pattern, whatever is in it.
fn below(directory: &Path, pattern: &str) -> String {
    let directory = Pattern::escape(&directory.to_string_lossy());
    format!("{}/{pattern}", directory.trim_end_matches('/'))
}

/// Returns the path before the first part of a pattern that may be more than one name.
pub(super) fn fixed_part(text: &str, dirs: RuleDirs<'_>) -> PathBuf {
    let is_plain = |part: &&str| !part.contains(['*', '?', '[']);
    let fixed: Vec<&str> = text.split('/').take_while(is_plain).collect();
    absolute(&fixed.join("/"), text.starts_with('/'), dirs)
}

/// Returns the file or directory that a pattern means as a whole: its own text, or the path before `/**`; `None` if it
/// is a pattern in another way.
pub(super) fn whole_place(text: &str, dirs: RuleDirs<'_>) -> Option<PathBuf> {
    let place = text.strip_suffix("/**").unwrap_or(text);
    let place = place.strip_suffix('/').unwrap_or(place);
    let is_plain = !place.is_empty() && !place.contains(['*', '?', '[']);
    is_plain.then(|| absolute(place, place.starts_with('/'), dirs))
}

fn absolute(path: &str, is_rooted: bool, dirs: RuleDirs<'_>) -> PathBuf {
    let in_home = path.strip_prefix('~').and_then(|it| Some((it, dirs.home?)));
    match in_home {
        Some((rest, home)) => home.join(rest.trim_start_matches('/')),
        None if is_rooted && path.is_empty() => PathBuf::from("/"),
        None => dirs.working.join(path),
    }
}
