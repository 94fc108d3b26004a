//! Handover to a supervisor: its role, its specification and its environment, as one piece of bytes.
//!
//! The role's name as a line, the specification's line of JSON, and behind it names and values in turn, each ended
//! by a NUL.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The bound on the specification line, in bytes; commands themselves are bounded by the kernel, and
/// so are secrets by their type.
pub(super) const SPEC_BYTES_MAX: usize = 2 << 20;
/// The bound on a specification and an environment together, in bytes; kernels take less of the latter.
pub(super) const HANDED_BYTES_MAX: usize = SPEC_BYTES_MAX + (8 << 20);

/// Names and values, as they were given.
pub(super) type Variables = Vec<(OsString, OsString)>;

/// Returns those of this process.
pub(super) fn variables_from_env() -> Variables {
    std::env::vars_os().collect()
}

/// Parsed handover.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HandoverParts {
    /// The name of the role.
    pub(super) role: String,
    /// The specification's line of JSON.
    pub(super) line: Vec<u8>,
    pub(super) variables: Variables,
}

/// Returns nothing if that cannot be handed over.
pub(super) fn encode(
    role: &str,
    line: &[u8],
    variables: &[(OsString, OsString)],
) -> Option<Vec<u8>> {
    let mut bytes = [role.as_bytes(), b"\n", line].concat();
    for part in variables.iter().flat_map(|(name, value)| [name, value]) {
        let part = part.as_bytes();
        if part.contains(&0) || bytes.len() + part.len() >= HANDED_BYTES_MAX {
            return None;
        }
        bytes.extend_from_slice(part);
        bytes.push(0);
    }
    Some(bytes)
}

pub(super) fn decode(bytes: &[u8]) -> io::Result<HandoverParts> {
    let (role, bytes) = split_line(bytes)?;
    let (line, rest) = split_line(bytes)?;
    let owned = |part: &[u8]| OsString::from_vec(part.to_vec());
    let mut parts = rest.split_inclusive(|byte| *byte == 0);
    let mut next = || parts.next()?.strip_suffix(&[0]).map(owned);
    let mut variables = Vec::new();
    while let (Some(name), Some(value)) = (next(), next()) {
        variables.push((name, value));
    }
    Ok(HandoverParts {
        role: String::from_utf8_lossy(role).trim_end().to_owned(),
        line: line.to_vec(),
        variables,
    })
}

fn split_line(bytes: &[u8]) -> io::Result<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or(io::ErrorKind::InvalidData)?;
    Ok(bytes.split_at(end + 1))
}

/// Returns the last value of a variable.
pub(super) fn value_of<'a>(variables: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let mut named = variables.iter().rev().filter(|(it, _)| it == name);
    named.next().map(|(_, value)| value.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    fn variable(name: &[u8], value: &[u8]) -> (OsString, OsString) {
        let owned = |it: &[u8]| OsString::from_vec(it.to_vec());
        (owned(name), owned(value))
    }

    #[test]
    fn role_specification_and_environment_arrive_as_they_were_given() {
        for variables in [
            vec![],
            vec![variable(b"A", b"")],
            vec![
                variable(b"A", b"1\n2=3"),
                variable(b"\xff", b"\xfe"),
                variable(b"A", b"4"),
            ],
        ] {
            let bytes = encode("role", b"{\"a\":1}\n", &variables).unwrap();
            let handed = HandoverParts {
                role: "role".to_owned(),
                line: b"{\"a\":1}\n".to_vec(),
                variables,
            };
            assert_eq!(decode(&bytes).unwrap(), handed);
        }
    }

    #[test]
    fn what_no_environment_can_hold_is_not_handed_over() {
        let long = vec![b'x'; HANDED_BYTES_MAX];
        for (name, value) in [(&b"A\0"[..], &b"1"[..]), (b"A", b"\0"), (b"A", &long)] {
            assert_eq!(encode("role", b"{}\n", &[variable(name, value)]), None);
        }
    }

    #[test]
    fn what_is_cut_off_is_no_variable() {
        let handed = decode(b"role\n{}\nA\x001\0B\x002").unwrap();
        assert_eq!(handed.variables, [variable(b"A", b"1")]);
        for cut in [&b""[..], b"role", b"role\n{}"] {
            decode(cut).unwrap_err();
        }
    }

    #[test]
    fn the_last_value_of_a_variable_counts() {
        let variables = [variable(b"A", b"1"), variable(b"A", b"2")];
        assert_eq!(value_of(&variables, "A"), Some(OsStr::new("2")));
        assert_eq!(value_of(&variables, "B"), None);
    }
}
