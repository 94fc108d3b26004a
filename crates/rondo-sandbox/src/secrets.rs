//! Where keys and passwords lie in a home directory. Nothing of it is opened to commands, whatever leads there.

use std::path::Path;

/// Directories and files below the home directory.
const OF_HOME: [&str; 51] = [
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
    ".dotnet/corefx",
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
    ".local/share/uv/credentials",
    ".local/state/rondo",
    ".rye/credentials",
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

/// Returns whether a path is that of a secret, or lies in a directory of secrets.
pub(crate) fn is_secret(path: &Path, home: Option<&Path>) -> bool {
    let name = path.file_name().unwrap_or_default();
    let ending = path.extension().unwrap_or_default();
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    NAMES.iter().any(|it| name == *it)
        || ENDINGS.iter().any(|it| ending == *it) && !path.is_dir()
        || below.is_some_and(|below| OF_HOME.iter().any(|it| below.starts_with(it)))
}

/// Returns whether a directory has a secret in it at a known place.
pub(crate) fn holds_secret(directory: &Path, home: &Path) -> bool {
    let below = directory.strip_prefix(home).ok();
    let has_home = home.starts_with(directory);
    let may_hold =
        |it: &str| has_home || below.is_some_and(|below| Path::new(it).starts_with(below));
    let mut places = OF_HOME.iter().filter(|it| may_hold(it));
    places.any(|it| home.join(it).exists())
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
        assert!(is_secret(".cargo/credentials.toml") && !is_secret(".cargo"));
        let holds_secret = |path: &str| holds_secret(&home.join(path), home);
        assert!(holds_secret(".cargo") && holds_secret(""));
        assert!(!holds_secret(".cargo/bin") && !holds_secret(".config"));
    }
}
