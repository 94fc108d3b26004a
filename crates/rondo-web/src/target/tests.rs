//! Attempts to name a host that must not be reached.

use super::*;

fn refused(text: &str) -> bool {
    Target::parse(text, &[]).is_err()
}

/// Spellings of hosts that must not be reached, and addresses that are none.
const ATTEMPTS: [&str; 83] = [
    // Decimal, octal, hexadecimal and short forms of 127.0.0.1.
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://0177.0x0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.1./",
    "http://127.000.000.001/",
    "http://0/",
    "http://0.0.0.0/",
    "http://00/",
    "http://0x0/",
    // Full-width digits, other dots, percent-encoding.
    "http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/",
    "http://127\u{3002}0\u{3002}0\u{3002}1/",
    "http://127%2e0%2e0%2e1/",
    "http://%31%32%37.0.0.1/",
    "http://\u{24db}ocalhost/",
    "http://\u{2460}\u{2461}\u{2466}.0.0.1/",
    // Names.
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://localhost.:80/",
    "http://a.localhost/",
    "http://loc%61lhost/",
    "http://printer/",
    "http://printer.local/",
    "http://router.lan/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://metadata/",
    "http://x.home.arpa/",
    // Other addresses.
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://169.254.43518/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.168.1.1/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://255.255.255.255/",
    // IPv6.
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:808:808:0:0:80ff:fffe]/",
    "http://[2606:4700::5efe:7f00:1]/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[ff02::1]/",
    // Users, and what looks like another host.
    "http://docs.rs@127.0.0.1/",
    "http://user:pass@docs.rs/",
    "http://docs.rs:80@localhost/",
    "http://docs.rs#@127.0.0.1:80@localhost/",
    "http://127.0.0.1\\@docs.rs/",
    "http:\\\\127.0.0.1\\",
    "http:/127.0.0.1/",
    "http:127.0.0.1/",
    "http:////127.0.0.1/",
    "\thttp://127.0.0.1/",
    "ht\ntp://127.0.0.1/",
    // Other schemes.
    "file:///etc/passwd",
    "ftp://docs.rs/",
    "gopher://docs.rs/",
    "data:text/html,x",
    "javascript:alert(1)",
    "unix:/run/x.sock",
    "ws://docs.rs/",
    "blob:http://docs.rs/x",
    "view-source:http://docs.rs/",
    "//docs.rs/",
    "docs.rs",
    "http://",
    "http://.",
    "http://docs.rs:99999/",
    "",
];

#[test]
fn no_spelling_of_a_local_host_gets_through() {
    let through: Vec<_> = ATTEMPTS.iter().filter(|text| !refused(text)).collect();
    // The first one is of `docs.rs`, by the rules of browsers: what follows `#` is not a host.
    assert_eq!(through, [&"http://docs.rs#@127.0.0.1:80@localhost/"]);
    let target = Target::parse(through[0], &[]).unwrap();
    assert_eq!(
        (target.host.as_str(), target.url.as_str()),
        ("docs.rs", "http://docs.rs/")
    );
}

#[test]
fn public_hosts_are_read() {
    for (text, host, port) in [
        ("https://docs.rs/serde", "docs.rs", 443),
        ("http://docs.rs:8080/a#b", "docs.rs", 8080),
        ("https://DOCS.rs./", "docs.rs", 443),
        (
            "https://m\u{fc}nchen.example/",
            "xn--mnchen-3ya.example",
            443,
        ),
        ("http://1.1.1.1/", "1.1.1.1", 80),
        ("http://[2606:4700:4700::1111]/", "2606:4700:4700::1111", 80),
        (
            "https://localhost.example.org/",
            "localhost.example.org",
            443,
        ),
        (
            "https://notlocal/x.local"
                .replace("notlocal", "a.b")
                .as_str(),
            "a.b",
            443,
        ),
    ] {
        let target = Target::parse(text, &[]).unwrap();
        assert_eq!((target.host.as_str(), target.port), (host, port), "{text}");
    }
}

#[test]
fn an_allowed_host_counts_by_label_and_port() {
    let allowed: Vec<_> = ["localhost:8080", "*.corp.example", "10.0.0.7", "[::1]:1"]
        .iter()
        .map(|text| AllowedHost::parse(text).unwrap())
        .collect();
    let is_allowed = |text: &str| {
        let target = Target::parse(text, &allowed);
        target.is_ok_and(|target| target.is_allowed)
    };
    for text in [
        "http://localhost:8080/",
        "http://127.0.0.1.localhost:8080/"
            .replace("127.0.0.1.", "")
            .as_str(),
        "http://a.corp.example/",
        "https://b.a.corp.example:7/",
        "http://10.0.0.7:99/",
        "http://[::1]:1/",
    ] {
        assert!(is_allowed(text), "{text}");
    }
    for text in [
        "http://localhost/",
        "http://localhost:80/",
        "http://127.0.0.1:8080/",
        "http://corp.example/",
        "http://evilcorp.example/",
        "http://corp.example.evil.com/",
        "http://10.0.0.8/",
        "http://[::1]/",
    ] {
        assert!(!is_allowed(text), "{text}");
    }
    for text in ["", "a b", "http://x/", "x/y", "u@x", "x?y"] {
        assert!(AllowedHost::parse(text).is_err(), "{text}");
    }
}

#[test]
fn an_address_longer_than_the_bound_is_refused() {
    let of = |bytes: usize| {
        let begin = "https://docs.rs/";
        refused(&format!("{begin}{}", "x".repeat(bytes - begin.len())))
    };
    let max = URL_BYTES_MAX;
    assert_eq!([of(max - 1), of(max), of(max + 1)], [false, false, true]);
}

#[test]
fn an_error_holds_no_password() {
    let error = Target::parse("https://user:hunter2@docs.rs/", &[]).unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}
