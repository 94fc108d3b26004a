//! Tokens for remote servers: a file for each address, which only the user can read.

use crate::private_file;
use async_trait::async_trait;
use data_encoding::HEXLOWER;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use rondo_http::Secret;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// The bound on one such file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The bound on a challenge that is kept, in bytes.
const CHALLENGE_BYTES_MAX: usize = 4 << 10;
/// The form of the files; those of a later one are left alone.
const VERSION: u32 = 1;

/// The directory of these files; if there is none, nothing is kept.
#[derive(Debug, Clone, Default)]
pub struct TokenStore(Option<PathBuf>);

impl TokenStore {
    /// Keeps the files in a directory, which is made when something is kept.
    #[must_use]
    pub fn in_directory(directory: PathBuf) -> Self {
        Self(Some(directory))
    }

    /// Forgets what was granted for an address. Returns whether there was anything.
    ///
    /// # Errors
    /// When it cannot be forgotten.
    pub fn forget(&self, url: &Secret) -> io::Result<bool> {
        self.of(url).remove()
    }

    /// Returns whether something was granted for an address.
    #[must_use]
    pub fn has(&self, url: &Secret) -> bool {
        let kept = self.of(url).read().ok().flatten();
        kept.is_some_and(|it| it.credentials.is_some())
    }

    /// Returns the tokens for an address, which must not be shown.
    #[must_use]
    pub fn secrets(&self, url: &Secret) -> Vec<String> {
        let kept = self.of(url).read().ok().flatten().unwrap_or_default();
        let tokens = kept.credentials.as_ref().and_then(|it| {
            let response = serde_json::to_value(it.token_response.as_ref()?).ok()?;
            let text = |key: &str| Some(response.get(key)?.as_str()?.to_owned());
            Some([text("access_token"), text("refresh_token")])
        });
        let mut secrets: Vec<String> = tokens.into_iter().flatten().flatten().collect();
        secrets.extend(kept.client.and_then(|it| it.secret));
        secrets
    }

    /// Returns the tokens of an address.
    pub(crate) fn of(&self, url: &Secret) -> Tokens {
        let name = HEXLOWER.encode(&Sha256::digest(url.expose()));
        let file = self.0.as_ref();
        Tokens(file.map(|it| it.join(format!("{name}.json"))))
    }
}

/// Tokens stored for one address.
#[derive(Debug, Clone)]
pub(crate) struct Tokens(Option<PathBuf>);

/// How we are known to an authorization server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ClientRegistration {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) redirect: String,
}

/// The content of a file.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct TokenFile {
    version: u32,
    pub(super) credentials: Option<StoredCredentials>,
    pub(super) client: Option<ClientRegistration>,
    /// Latest request of the server since the user signed in.
    pub(super) challenge: Option<String>,
}

impl Tokens {
    pub(super) fn read(&self) -> io::Result<Option<TokenFile>> {
        let Some(file) = &self.0 else {
            return Ok(None);
        };
        let kept: TokenFile = match private_file::read(file, FILE_BYTES_MAX) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(err),
        };
        match kept.version {
            VERSION => Ok(Some(kept)),
            later => Err(io::Error::other(format!("it has version {later}"))),
        }
    }

    /// Changes what is kept.
    pub(super) fn change(&self, change: impl FnOnce(&mut TokenFile)) -> io::Result<()> {
        let Some(file) = &self.0 else {
            return Ok(());
        };
        // Unreadable tokens are replaced by the ones granted now.
        let mut kept = self.read().ok().flatten().unwrap_or_default();
        change(&mut kept);
        kept.version = VERSION;
        private_file::write(file, &serde_json::to_vec(&kept)?)
    }

    /// Keeps what a server asks for, for the next time that the user signs in.
    pub(crate) fn keep_challenge(&self, challenge: &str) {
        let says_what = challenge.contains("scope=") || challenge.contains("resource_metadata=");
        let is_known = |it: &TokenFile| it.challenge.as_deref() == Some(challenge);
        let is_kept = says_what
            && challenge.len() <= CHALLENGE_BYTES_MAX
            && !matches!(self.read(), Ok(Some(kept)) if is_known(&kept));
        if is_kept && let Err(err) = self.change(|it| it.challenge = Some(challenge.to_owned())) {
            tracing::warn!(%err, "what a server asks for cannot be kept");
        }
    }

    fn remove(&self) -> io::Result<bool> {
        match self.0.as_ref().map(fs::remove_file) {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(err)) if err.kind() == io::ErrorKind::NotFound => Ok(false),
            Some(Err(err)) => Err(err),
        }
    }

    /// Waits until no other process exchanges these tokens.
    fn lock(&self) -> io::Result<Option<File>> {
        let Some(file) = &self.0 else {
            return Ok(None);
        };
        let lock = private_file::open_lock(&file.with_extension("lock"))?;
        lock.lock()?;
        Ok(Some(lock))
    }
}

fn failed(err: &io::Error) -> AuthError {
    AuthError::CredentialStoreError(err.to_string())
}

#[async_trait]
impl CredentialStore for Tokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let kept = self.read().map_err(|err| failed(&err))?;
        Ok(kept.and_then(|it| it.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let changed = self.change(|it| {
            it.credentials = Some(credentials);
            it.challenge = None;
        });
        changed.map_err(|err| failed(&err))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.remove().map(drop).map_err(|err| failed(&err))
    }

    /// A refresh token may count once: of two processes, the second one finds what the first one got.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let tokens = self.clone();
        let locked = tokio::task::spawn_blocking(move || tokens.lock()).await;
        let locked = locked.map_err(io::Error::other).and_then(|it| it);
        let locked = locked.map_err(|err| failed(&err))?;
        Ok(locked.map(CredentialRefreshGuard::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt as _;

    fn granted(token: &str) -> StoredCredentials {
        let response = json!({"access_token": token, "refresh_token": "r3fresh-token", "token_type": "bearer"});
        let response = serde_json::from_value(response).unwrap();
        StoredCredentials::new("c".to_owned(), Some(response), vec![], None)
    }

    #[tokio::test]
    async fn what_was_granted_is_the_users_alone_and_of_one_address() {
        let home = tempfile::tempdir().unwrap();
        let store = TokenStore::in_directory(home.path().join("tokens"));
        let (one, two) = (Secret::new("https://a/mcp"), Secret::new("https://b/mcp"));
        let tokens = store.of(&one);
        assert!(!store.has(&one) && tokens.load().await.unwrap().is_none());
        tokens.save(granted("s3cret-token")).await.unwrap();
        assert!(store.has(&one) && !store.has(&two));
        assert_eq!(store.secrets(&one), ["s3cret-token", "r3fresh-token"]);
        let file = tokens.0.clone().unwrap();
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&file) & 0o777, 0o600);
        assert_eq!(mode(file.parent().unwrap()) & 0o777, 0o700);
        tokens.keep_challenge("Bearer error=\"invalid_token\"");
        assert!(tokens.read().unwrap().unwrap().challenge.is_none());
        tokens.keep_challenge("Bearer scope=\"a\"");
        assert!(tokens.read().unwrap().unwrap().challenge.is_some());
        tokens.save(granted("other")).await.unwrap();
        assert!(tokens.read().unwrap().unwrap().challenge.is_none());
        assert!(store.forget(&one).unwrap() && !store.forget(&one).unwrap());
        assert!(!store.has(&one));
    }

    #[tokio::test]
    async fn of_two_that_refresh_one_waits() {
        let home = tempfile::tempdir().unwrap();
        let store = TokenStore::in_directory(home.path().to_owned());
        let tokens = store.of(&Secret::new("https://a"));
        let held = tokens.acquire_refresh_guard().await.unwrap();
        let lock = private_file::open_lock(&tokens.0.as_ref().unwrap().with_extension("lock"));
        let lock = lock.unwrap();
        assert!(lock.try_lock().is_err());
        drop(held);
        lock.try_lock().unwrap();
    }

    #[test]
    fn a_file_that_is_none_is_said_to_be_and_replaced_by_what_is_granted() {
        let home = tempfile::tempdir().unwrap();
        let store = TokenStore::in_directory(home.path().to_owned());
        let url = Secret::new("https://a");
        let tokens = store.of(&url);
        for text in ["", "[]", r#"{"version": 2}"#] {
            fs::write(tokens.0.as_ref().unwrap(), text).unwrap();
            assert!(tokens.read().is_err(), "{text}");
            assert!(!store.has(&url) && store.secrets(&url).is_empty());
        }
        tokens
            .change(|it| it.credentials = Some(granted("t")))
            .unwrap();
        assert!(store.has(&url));
    }
}
