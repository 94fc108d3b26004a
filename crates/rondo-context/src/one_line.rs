//! Text that others wrote, on one line of ours.

/// Escapes control characters: a name may hold line ends, and with them sentences that pass for ours.
pub(crate) fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|it| {
            if it.is_control() {
                it.escape_default().collect()
            } else {
                vec![it]
            }
        })
        .collect()
}
