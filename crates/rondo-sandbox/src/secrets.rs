//! Locations of keys and passwords in a home directory. No link or setting opens them to commands.

use std::path::{Path, PathBuf};

/// Directories and files below the home directory.
const OF_HOME: [&str; 52] = [
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
    ".m2/settings-security.xml",
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
/// Files of settings in toolchains below the home directory that may have a password in them. A star is any directory.
const OF_TOOLCHAINS: [&str; 27] = [
    ".asdf/installs/nodejs/*/.npm/etc/npmrc",
    ".asdf/installs/nodejs/*/etc/npmrc",
    ".asdf/installs/python/*/pip.conf",
    ".cache/pypoetry/virtualenvs/*/pip.conf",
    ".conda/.condarc",
    ".fnm/node-versions/*/installation/etc/npmrc",
    ".local/share/fnm/node-versions/*/installation/etc/npmrc",
    ".local/share/mise/installs/node/*/etc/npmrc",
    ".local/share/mise/installs/python/*/pip.conf",
    ".local/share/virtualenvs/*/pip.conf",
    ".n/etc/npmrc",
    ".nodenv/versions/*/etc/npmrc",
    ".nvm/.npmrc",
    ".nvm/versions/node/*/etc/npmrc",
    ".pyenv/versions/*/pip.conf",
    ".rbenv/versions/*/etc/gemrc",
    ".rvm/rubies/*/etc/gemrc",
    ".sdkman/candidates/maven/*/conf/settings.xml",
    ".virtualenvs/*/pip.conf",
    ".volta/tools/image/node/*/etc/npmrc",
    "anaconda3/*condarc",
    "mambaforge/*condarc",
    "micromamba/*condarc",
    "miniconda3/*condarc",
    "miniforge3/*condarc",
    "sdk/maven/conf/settings.xml",
    ".local/share/pypoetry/venv/pip.conf",
];
/// Words in such a file that mark a password.
const PASSWORDS: [&str; 6] = ["_auth", "password", "passwd", "secret", "token", "/t/"];
/// The bounds on the part of one that is read, in bytes, and on files and directories that a star is looked for among.
const SETTINGS_BYTES_MAX: u64 = 256 << 10;
const ENTRIES_MAX: usize = 256;
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

/// Returns the files of settings with passwords in the toolchains of a user, which commands may read otherwise.
#[must_use]
pub fn secrets_of_toolchains(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for pattern in OF_TOOLCHAINS {
        let mut places = vec![home.to_owned()];
        for part in pattern.split('/') {
            places = places.iter().flat_map(|it| entries(it, part)).collect();
        }
        found.extend(places.into_iter().filter(|it| has_password(it)));
    }
    found
}

/// Returns the entries of a directory that a part of a pattern names.
fn entries(place: &Path, part: &str) -> Vec<PathBuf> {
    let Some(ending) = part.strip_prefix('*') else {
        return Vec::from_iter(Some(place.join(part)).filter(|it| it.exists()));
    };
    let listed = std::fs::read_dir(place).into_iter().flatten().flatten();
    let listed = listed.take(ENTRIES_MAX).map(|it| it.path());
    let has_ending = |it: &PathBuf| {
        it.as_os_str()
            .as_encoded_bytes()
            .ends_with(ending.as_bytes())
    };
    listed.filter(has_ending).collect()
}

/// Returns whether a file of settings seems to have a password in it, or is too long to tell.
fn has_password(file: &Path) -> bool {
    // Opening a pipe would wait for a writer.
    let Ok(metadata) = file.metadata() else {
        return false;
    };
    if !metadata.is_file() || metadata.len() > SETTINGS_BYTES_MAX {
        return metadata.is_file();
    }
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).to_lowercase();
    let has_user = |word: &str| {
        let host = word
            .split_once("://")
            .and_then(|(_, rest)| rest.split('/').next());
        host.and_then(|it| it.split_once('@'))
            .is_some_and(|(user, _)| user.contains(':'))
    };
    PASSWORDS.iter().any(|it| text.contains(it)) || text.split_whitespace().any(has_user)
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
    fn settings_of_toolchains_are_secret_if_they_have_a_password() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".nvm/versions/node/v1/etc/npmrc", "//h/:_authToken=x");
        write(".nvm/versions/node/v2/etc/npmrc", "fund=false");
        write(
            ".pyenv/versions/3/pip.conf",
            "index-url = https://u:p@h/simple",
        );
        write(".pyenv/versions/4/pip.conf", "index-url = https://h/simple");
        write("miniconda3/.condarc", "channels:\n - https://h/t/x/c");
        let found = secrets_of_toolchains(place.path());
        let expected = [
            ".nvm/versions/node/v1/etc/npmrc",
            ".pyenv/versions/3/pip.conf",
            "miniconda3/.condarc",
        ];
        assert_eq!(found, expected.map(|it| place.path().join(it)));
    }

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
