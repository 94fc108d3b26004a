//! From a server's challenge to a token, and from a token to requests with it.

use super::exchange::Exchange;
use super::redirect::{Redirect, came_back};
use super::tokens::{ClientRegistration, TokenFile, TokenStore, Tokens};
use crate::config::{Connection, OAuthClient, Server};
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, OAuthClientConfig, WWWAuthenticateParams,
};
use rondo_http::Transport;
use rondo_types::text::first_chars;
use std::error::Error as _;
use std::sync::Arc;

/// The name that authorization servers show to the user.
const CLIENT_NAME: &str = "Rondo";
/// Characters of a failure that are shown.
const FAILURE_CHARS_MAX: usize = 400;

/// A user who signs in to a server, with a browser.
pub struct SignIn {
    manager: AuthorizationManager,
    redirect: Redirect,
    address: String,
    state: String,
    client: ClientRegistration,
    tokens: Tokens,
}

impl SignIn {
    /// Finds the authorization server, makes us known to it, and listens for the browser.
    ///
    /// # Errors
    /// Says why signing in is impossible, in a sentence without secrets.
    ///
    /// # Cancel safety
    /// Cancel safe; the authorization server may know us already.
    pub async fn begin(
        server: &Server,
        transport: &Transport,
        store: &TokenStore,
    ) -> Result<Self, String> {
        let Connection::Http { url, oauth, .. } = &server.connection else {
            return Err("it is a program, and not at an address".to_owned());
        };
        if server.has_authorisation() {
            return Err("its `headers` have a token already".to_owned());
        }
        let tokens = store.of(url);
        let kept = tokens.read().ok().flatten().unwrap_or_default();
        let mut manager = manager(url.expose(), transport, &tokens).await?;
        let resolved = manager
            .resolve_metadata_from_challenge(kept.challenge.as_deref())
            .await;
        let metadata = resolved.map_err(|err| why(&err))?.metadata;
        manager.set_metadata(metadata.clone());
        let scopes = scopes(&manager, oauth, &kept, url.expose()).await;
        let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let redirect = Redirect::listen(oauth.callback_port).await?;
        let takes_documents = metadata
            .additional_fields
            .get("client_id_metadata_document_supported")
            .is_some_and(|it| it == true);
        let config = match (&oauth.client_id, &oauth.client_metadata_url) {
            (Some(id), _) => OAuthClientConfig::new(id, redirect.address()),
            (None, Some(document)) if takes_documents => {
                OAuthClientConfig::new(document, redirect.address())
            }
            _ => {
                let registering = manager.register_client(CLIENT_NAME, redirect.address(), &names);
                registering.await.map_err(|err| why(&err))?
            }
        };
        let config = match &oauth.client_secret {
            Some(secret) if oauth.client_id.is_some() => config.with_client_secret(secret.expose()),
            _ => config,
        };
        let client = ClientRegistration {
            id: config.client_id.clone(),
            secret: config.client_secret.clone(),
            redirect: config.redirect_uri.clone(),
        };
        manager.configure_client(config).map_err(|err| why(&err))?;
        let address = manager.get_authorization_url(&names).await;
        let address = address.map_err(|err| why(&err))?;
        Exchange::new(transport.clone(), url.expose()).check(&address)?;
        let state = came_back(&address).and_then(|it| it.state);
        Ok(Self {
            manager,
            redirect,
            state: state.ok_or("there is no state")?,
            address,
            client,
            tokens,
        })
    }

    /// Returns the address that the user opens.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits for the browser, and returns the address that it came back to.
    ///
    /// # Errors
    /// When this machine's port cannot be listened on any more.
    ///
    /// # Cancel safety
    /// Cancel safe: it can be waited for again.
    pub async fn came_back(&self) -> Result<String, String> {
        self.redirect.wait(&self.state).await
    }

    /// Exchanges what is in the address that the browser came back to for a token, and keeps it.
    ///
    /// # Errors
    /// When it is another address, the user said no, or no token is given or can be kept.
    ///
    /// # Cancel safety
    /// Not cancel safe: the code may be used up.
    pub async fn finish(self, url: &str) -> Result<(), String> {
        let back = came_back(url).filter(|it| it.state.as_deref() == Some(&*self.state));
        let back = back.ok_or("it is not the address that the browser was sent back to")?;
        if let Some(error) = &back.error {
            return Err(format!(
                "the authorisation server says {}",
                shortened(error)
            ));
        }
        let code = back.code.ok_or("the address has no code")?;
        let client = self.client;
        let kept = self.tokens.change(|it| {
            it.credentials = None;
            it.client = Some(client);
        });
        kept.map_err(|err| format!("failed to store the sign-in: {err}"))?;
        let exchanging = self.manager.exchange_code_for_token_with_issuer(
            &code,
            &self.state,
            back.issuer.as_deref(),
        );
        exchanging.await.map(drop).map_err(|err| why(&err))
    }
}

/// Returns the scopes to ask for: the configured ones; those that were granted and those that the server asked for
/// beyond them; or those that the
/// server names.
async fn scopes(
    manager: &AuthorizationManager,
    oauth: &OAuthClient,
    kept: &TokenFile,
    url: &str,
) -> Vec<String> {
    if !oauth.scopes.is_empty() {
        return oauth.scopes.clone();
    }
    let granted = kept.credentials.as_ref().map(|it| &it.granted_scopes);
    let (Some(challenge), Some(granted), Ok(base)) =
        (&kept.challenge, granted, url::Url::parse(url))
    else {
        return manager.select_initial_scopes(&[]).await;
    };
    let asked = WWWAuthenticateParams::parse(challenge, &base).scope;
    let mut scopes = granted.clone();
    for scope in asked.unwrap_or_default().split_whitespace() {
        if !scopes.iter().any(|it| it == scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes
}

async fn manager(
    url: &str,
    transport: &Transport,
    tokens: &Tokens,
) -> Result<AuthorizationManager, String> {
    let exchange = Arc::new(Exchange::new(transport.clone(), url));
    let manager = AuthorizationManager::new_with_oauth_http_client(url, exchange).await;
    let mut manager = manager.map_err(|err| why(&err))?;
    manager.set_credential_store(tokens.clone());
    Ok(manager)
}

/// Lets a client send the token that was granted for an address; none if the user has not signed in. The authorization
/// server is looked up once, since a server may have another one by now, which must not get the tokens of the first.
///
/// # Errors
/// Says why the token cannot be used, in a sentence without secrets.
pub(crate) async fn authorised<C>(
    client: C,
    url: &str,
    transport: &Transport,
    tokens: &Tokens,
) -> Result<AuthClient<C>, String> {
    let mut manager = manager(url, transport, tokens).await?;
    let kept = tokens.read();
    let kept = kept.map_err(|err| format!("failed to read the stored sign-in: {err}"))?;
    if let Some(kept) = kept.filter(|it| it.credentials.is_some()) {
        let is_usable = manager.initialize_from_store().await;
        if is_usable.map_err(|err| why(&err))?
            && let Some(client) = kept.client
        {
            let mut config = OAuthClientConfig::new(client.id, client.redirect);
            config.client_secret = client.secret;
            manager.configure_client(config).map_err(|err| why(&err))?;
        }
    }
    Ok(AuthClient::new(client, manager))
}

fn why(err: &AuthError) -> String {
    let mut text = err.to_string();
    let mut source = err.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    shortened(&text)
}

fn shortened(text: &str) -> String {
    rondo_core::shown::line(first_chars(text, FAILURE_CHARS_MAX))
}
