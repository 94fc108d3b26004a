//! Decides whether a line is a complete command.

/// Returns whether a text is one or more complete commands: `false` with an open quote, here-document, bracket
/// or compound command, or a backslash at its end.
///
/// Text that the parser does not understand, or that is longer than
/// [`COMMAND_BYTES_MAX`](super::COMMAND_BYTES_MAX), counts as complete, so that the shell reports the error.
#[must_use]
pub fn is_complete(text: &str) -> bool {
    !super::is_cut_off(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_commands_are_whole() {
        for text in [
            "",
            "ls -l",
            "echo 'a\nb'",
            "for i in 1 2; do echo $i; done",
            "cat <<EOF\na\nEOF",
            "echo a; # comment with ' in it",
            "if true; then\n  echo a\nfi",
            "f() {\n  echo a\n}",
            "echo a\\\\",
            "echo $(ls)",
            "cd ..",
            "case x in x) echo;; esac",
            // Wrong, but nothing that continues can mend it.
            "fi",
            "echo )",
            "done; do",
        ] {
            assert!(is_complete(text), "{text}");
        }
    }

    #[test]
    fn commands_that_go_on_are_not() {
        for text in [
            "echo 'a",
            "echo \"a",
            "echo `ls",
            "echo $(ls",
            "echo ${a",
            "cat <<EOF",
            "cat <<EOF\na",
            "for i in 1 2; do",
            "if true; then\n  echo a",
            "while :; do echo a",
            "f() {",
            "(cd ..",
            "ls |",
            "ls &&",
            "echo a\\",
            "case x in",
        ] {
            assert!(!is_complete(text), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_parsed_in_bounds_is_left_to_the_shell() {
        let long = "#".repeat(crate::analysis::COMMAND_BYTES_MAX);
        assert!(is_complete(&format!("echo '{long}")));
        assert!(is_complete(&"if true; then ".repeat(500)));
    }
}
