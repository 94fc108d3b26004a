//! What a call is handed over with: its specification and its environment, as one piece of bytes.
//!
//! The specification's line of JSON, and behind it names and values in turn, each ended by a NUL.

use super::protocol::{CallSpec, SPEC_BYTES_MAX};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The bound on a specification and an environment together, in bytes; kernels take less of the latter.
pub(super) const HANDED_BYTES_MAX: usize = SPEC_BYTES_MAX + (8 << 20);

/// Names and values, as they were given.
pub(super) type Variables = Vec<(OsString, OsString)>;

/// Returns those of this process.
pub(super) fn variables_from_env() -> Variables {
    std::env::vars_os().collect()
}

/// Returns nothing where that cannot be handed over.
pub(super) fn encode(line: &[u8], variables: &[(OsString, OsString)]) -> Option<Vec<u8>> {
    let mut bytes = line.to_vec();
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

pub(super) fn decode(bytes: &[u8]) -> io::Result<(CallSpec, Variables)> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
    let spec = serde_json::from_slice(line)?;
    let owned = |part: &[u8]| OsString::from_vec(part.to_vec());
    let mut parts = rest.split_inclusive(|byte| *byte == 0);
    let mut next = || parts.next()?.strip_suffix(&[0]).map(owned);
    let mut variables = Vec::new();
    while let (Some(name), Some(value)) = (next(), next()) {
        variables.push((name, value));
    }
    Ok((spec, variables))
}

/// Returns the last value of a variable.
pub(super) fn value_of<'a>(variables: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let mut named = variables.iter().rev().filter(|(it, _)| it == name);
    named.next().map(|(_, value)| value.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PtySize;
    use rondo_core::redact::Secrets;

    fn spec() -> CallSpec {
        CallSpec {
            key: "k".to_owned(),
            state_dir: "/s".into(),
            command: "echo 'a\nb\0'".to_owned(),
            directory: "/d".into(),
            timeout_ms: 1,
            outlive_ms: 2,
            output_bytes_max: 3,
            spill_bytes_max: 4,
            pty: PtySize::default(),
            is_kept: true,
            sandbox: None,
            secrets: Secrets::new(["a secret of some length".to_owned()]),
        }
    }

    fn line(spec: &CallSpec) -> Vec<u8> {
        let mut line = serde_json::to_vec(spec).unwrap();
        line.push(b'\n');
        line
    }

    fn variable(name: &[u8], value: &[u8]) -> (OsString, OsString) {
        let owned = |it: &[u8]| OsString::from_vec(it.to_vec());
        (owned(name), owned(value))
    }

    #[test]
    fn specification_and_environment_arrive_as_they_were_given() {
        let spec = spec();
        for variables in [
            vec![],
            vec![variable(b"A", b"")],
            vec![
                variable(b"A", b"1\n2=3"),
                variable(b"\xff", b"\xfe"),
                variable(b"A", b"4"),
            ],
        ] {
            let bytes = encode(&line(&spec), &variables).unwrap();
            assert_eq!(decode(&bytes).unwrap(), (spec.clone(), variables));
        }
    }

    #[test]
    fn what_no_environment_can_hold_is_not_handed_over() {
        let long = vec![b'x'; HANDED_BYTES_MAX];
        for (name, value) in [(&b"A\0"[..], &b"1"[..]), (b"A", b"\0"), (b"A", &long)] {
            assert_eq!(encode(b"{}\n", &[variable(name, value)]), None);
        }
    }

    #[test]
    fn what_is_cut_off_is_no_variable() {
        let mut bytes = line(&spec());
        bytes.extend_from_slice(b"A\x001\0B\x002");
        let (_, variables) = decode(&bytes).unwrap();
        assert_eq!(variables, [variable(b"A", b"1")]);
        decode(b"").unwrap_err();
        decode(b"A\x001\0").unwrap_err();
    }

    #[test]
    fn the_last_value_of_a_variable_counts() {
        let variables = [variable(b"A", b"1"), variable(b"A", b"2")];
        assert_eq!(value_of(&variables, "A"), Some(OsStr::new("2")));
        assert_eq!(value_of(&variables, "B"), None);
    }
}
