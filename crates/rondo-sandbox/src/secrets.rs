//! Where keys and passwords lie in a home directory. Nothing of it is opened to commands, whatever leads there.

use std::path::Path;

/// Directories and files below the home directory.
const OF_HOME: [&str; 48] = [
    ".ssh",
    ".gnupg",
    ".pki",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".mozilla",
    ".thunderbird",
    ".vault-token",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".bunfig.toml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".bash_history",
    ".zsh_history",
    ".rondo",
    ".android",
    ".subversion",
    ".terraform.d",
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".gem/credentials",
    ".gradle/gradle.properties",
    ".m2/settings.xml",
    ".nuget/NuGet",
    ".pub-cache/credentials.json",
    ".config/chromium",
    ".config/composer/auth.json",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/op",
    ".config/rondo",
    ".local/share/gem/credentials",
    ".local/share/keyrings",
    ".local/share/rondo",
    ".local/state/rondo",
];
/// Names that keys and passwords have in any directory.
const NAMES: [&str; 11] = [
    ".env",
    ".git-credentials",
    ".netrc",
    "_netrc",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
];
/// Endings of such names.
const ENDINGS: [&str; 6] = ["gpg", "kdbx", "key", "p12", "pem", "pfx"];

/// Returns whether a path is one of a secret, or of a directory that has one in it at a known place.
pub(crate) fn is_secret(path: &Path, home: Option<&Path>) -> bool {
    let name = path.file_name().unwrap_or_default();
    let ending = path.extension().unwrap_or_default();
    let of_home = |home: &Path| {
        let below = path.strip_prefix(home).ok();
        let has_home = home.starts_with(path);
        OF_HOME.iter().any(|it| {
            let is_in_it = below.is_some_and(|below| below.starts_with(it));
            let may_hold_it =
                has_home || below.is_some_and(|below| Path::new(it).starts_with(below));
            is_in_it || may_hold_it && home.join(it).exists()
        })
    };
    NAMES.iter().any(|it| name == *it)
        || ENDINGS.iter().any(|it| ending == *it) && !path.is_dir()
        || home.is_some_and(of_home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_what_holds_them_are_known() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path();
        let is_secret = |path: &str| is_secret(&home.join(path), Some(home));
        for path in [
            ".ssh",
            ".ssh/config",
            ".netrc",
            "work/id_rsa",
            "a/b.pem",
            ".config/gh/x",
        ] {
            assert!(is_secret(path), "{path}");
        }
        for path in [
            ".config/git/ignore",
            "dotfiles/gitconfig",
            ".cargo",
            ".pyenv",
        ] {
            assert!(!is_secret(path), "{path}");
        }
        std::fs::create_dir(home.join(".cargo")).unwrap();
        std::fs::write(home.join(".cargo/credentials.toml"), "").unwrap();
        assert!(is_secret(".cargo") && is_secret(""));
        assert!(!is_secret(".cargo/bin"));
    }
}
