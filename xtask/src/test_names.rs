//! Which requirements a test's name says it proves.

const DESIGNS: [&str; 5] = ["py", "fa", "my", "hub", "gs"];

/// Returns the ids at the beginning of a test's name, as the requirements spell them.
///
/// `gs_12_gs_13_exit_codes` names `GS-12` and `GS-13`; `py_t6_happy_path` names `PY-T6`.
pub(crate) fn ids_in(name: &str) -> Vec<String> {
    let mut words = name.split('_');
    let mut ids = Vec::new();
    while let (Some(design), Some(number)) = (words.next(), words.next()) {
        if !DESIGNS.contains(&design) || !is_number(number) {
            break;
        }
        ids.push(format!("{design}-{number}").to_uppercase());
    }
    ids
}

/// Returns the names of the functions in a source whose names begin with an id.
pub(crate) fn functions_in(source: &str) -> Vec<&str> {
    source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .filter_map(|line| line.split_once("fn ").map(|(_, rest)| rest))
        .map(|rest| {
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            rest.split_at(end).0
        })
        .filter(|name| !ids_in(name).is_empty())
        .collect()
}

fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix(['t', 'f']).unwrap_or(word);
    let lettered = digits.len() < word.len();
    (lettered || !digits.is_empty()) && digits.chars().all(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_every_leading_id() {
        assert_eq!(ids_in("fa_14_valid_arguments_pass"), ["FA-14"]);
        assert_eq!(ids_in("gs_12_gs_13_exit_codes"), ["GS-12", "GS-13"]);
        assert_eq!(ids_in("py_t6_happy_path"), ["PY-T6"]);
        assert_eq!(ids_in("hub_t_basic"), ["HUB-T"]);
        assert_eq!(ids_in("gs_f3_callbacks"), ["GS-F3"]);
    }

    #[test]
    fn a_name_without_an_id_gives_none() {
        assert!(ids_in("my_best_test").is_empty());
        assert!(ids_in("fa_fast_path").is_empty());
        assert!(ids_in("step_limit_returns_degraded_answer").is_empty());
    }

    #[test]
    fn functions_are_found_and_comments_are_not() {
        let source =
            "async fn fa_1_x() {}\n// fn fa_2_y()\n    fn gs_3_z(a in 0..3) {\nfn other() {}\n";
        assert_eq!(functions_in(source), ["fa_1_x", "gs_3_z"]);
    }
}
