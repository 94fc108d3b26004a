//! Report of the shell before each prompt.
//!
//! Fields that end with NUL: `s:NONCE:SEQ:STATUS`, the directory, the jobs, the exported variables,
//! `e:NONCE`. Bash gives the jobs as process groups and the variables as the one field that
//! `export -p` prints; zsh gives the jobs as `$jobstates` does, and each variable as a field.

use super::declarations::declarations;
use rondo_policy::Variables;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The bound on one report, in bytes. Of a longer one the environment is not known.
pub(super) const REPORT_BYTES_MAX: usize = 2 << 20;

/// The state of a shell at its prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) directory: PathBuf,
    /// The process groups of its jobs.
    pub(super) jobs: Vec<i32>,
    /// The exported variables; `None` if they are past the bound.
    pub(super) environment: Option<Variables>,
}

/// Returns the last report in `bytes`; an earlier one may have been interrupted.
pub(super) fn last_of<'a>(bytes: &'a [u8], nonce: &str) -> Option<&'a [u8]> {
    let head = format!("s:{nonce}:").into_bytes();
    let at = (0..bytes.len()).rev().find(|at| {
        let begins = *at == 0 || bytes.get(at - 1) == Some(&0);
        begins && bytes.get(*at..).is_some_and(|rest| rest.starts_with(&head))
    })?;
    bytes.get(at..)
}

/// Reads a report as [`last_of`] returns it.
pub(super) fn parse(bytes: &[u8]) -> Option<Report> {
    let mut fields = bytes.split(|b| *b == 0);
    let head = fields.next()?;
    let nonce = head.split(|b| *b == b':').nth(1)?;
    let directory = PathBuf::from(OsString::from_vec(fields.next()?.to_vec()));
    let jobs = jobs(fields.next()?);
    let end = [b"e:", nonce].concat();
    let rest: Vec<&[u8]> = fields.collect();
    let environment = rest
        .iter()
        .position(|field| *field == end)
        .and_then(|end| rest.get(..end))
        .map(variables);
    Some(Report {
        directory,
        jobs,
        environment,
    })
}

/// Takes process ids out of lines of them, and out of `running:+:12=running:13=running`.
fn jobs(field: &[u8]) -> Vec<i32> {
    String::from_utf8_lossy(field)
        .split(|c: char| c.is_whitespace() || c == ':')
        .filter_map(|word| word.split('=').next()?.parse().ok())
        .collect()
}

/// The hooks' own names are there if the user has everything exported (`set -a`).
fn variables(fields: &[&[u8]]) -> Variables {
    let found: BTreeMap<_, _> = match fields {
        [one] if !is_variable(one) => declarations(one),
        fields => fields.iter().filter_map(|field| variable(field)).collect(),
    };
    let is_own = |name: &OsString| name.as_encoded_bytes().starts_with(b"__rondo_");
    let found = found.into_iter().filter(|(name, _)| !is_own(name));
    found.collect()
}

fn is_variable(field: &[u8]) -> bool {
    let name = field.split(|b| *b == b'=').next().unwrap_or_default();
    !name.contains(&b' ') && field.contains(&b'=')
}

fn variable(field: &[u8]) -> Option<(OsString, OsString)> {
    let at = field.iter().position(|b| *b == b'=').filter(|at| *at > 0)?;
    let (name, value) = (field.get(..at)?, field.get(at + 1..)?);
    Some((
        OsString::from_vec(name.to_vec()),
        OsString::from_vec(value.to_vec()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Option<Variables> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        Some(pairs.collect())
    }

    #[test]
    fn a_report_of_bash_is_read() {
        let bytes = b"s:n:3:0\0/home/u\x0012\n13\n\0declare -x A=\"b\"\ndeclare -x C\n\0e:n\0";
        let report = Report {
            directory: "/home/u".into(),
            jobs: vec![12, 13],
            environment: environment(&[("A", "b")]),
        };
        assert_eq!(parse(bytes), Some(report));
    }

    #[test]
    fn a_report_of_zsh_is_read() {
        let bytes = b"s:n:3:0\0/\0running:+:12=running:13=done suspended:-:14=suspended\n\0A=b=c\0D=\0\0e:n\0";
        let report = Report {
            directory: "/".into(),
            jobs: vec![12, 13, 14],
            environment: environment(&[("A", "b=c"), ("D", "")]),
        };
        assert_eq!(parse(bytes), Some(report));
    }

    #[test]
    fn the_last_report_counts_and_a_cut_one_has_no_environment() {
        let bytes = b"s:n:3:0\0/half\0s:n:3:130\0/whole\0\0A=b\0";
        let last = last_of(bytes, "n").unwrap();
        let report = parse(last).unwrap();
        assert_eq!(report.directory, PathBuf::from("/whole"));
        assert_eq!(report.environment, None);
        assert_eq!(last_of(bytes, "m"), None);
    }
}
