//! The tools that read the web, and the reader of pages and PDFs.

use crate::error::Result;
#[cfg(feature = "web")]
use crate::error::{SetupError, SetupErrorKind};
use crate::settings::Settings;
use rondo_core::Tool;
use rondo_tools::DocumentReader;
use std::sync::Arc;

/// Reads a document and never returns, if the program was started for that. Must be called at the top of `main`, before
/// the hook of supervisors.
pub fn run_if_requested() {
    #[cfg(feature = "web")]
    rondo_web::reader::run_if_requested();
}

/// The tools, without the feature: none.
#[cfg(not(feature = "web"))]
mod parts {
    use super::*;

    pub(super) const NAMES: [&str; 0] = [];

    pub(super) fn tools(_: &Settings) -> Result<Vec<Arc<dyn Tool>>> {
        Ok(Vec::new())
    }

    pub(super) fn documents() -> Option<Arc<dyn DocumentReader>> {
        None
    }
}

#[cfg(feature = "web")]
mod parts {
    use super::*;
    use crate::transport::network;
    use crate::values::WebSearchChoice;
    use async_trait::async_trait;
    use rondo_exec::SupervisorCommand;
    use rondo_http::{Secret, Transport};
    use rondo_tools::DocumentText;
    use rondo_web::reader::{Document, Reader};
    use rondo_web::search::{BRAVE_URL, SEARCH_TOOL, SearchEngine, WebSearch};
    use rondo_web::{AllowedHost, Egress, FETCH_TOOL, WebFetch};

    pub(super) const NAMES: [&str; 2] = [FETCH_TOOL, SEARCH_TOOL];
    /// The variables with the key of Brave's API.
    const BRAVE_KEYS: [&str; 2] = ["BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"];

    pub(super) fn tools(settings: &Settings) -> Result<Vec<Arc<dyn Tool>>> {
        let failed = |err| SetupError::caused(SetupErrorKind::Config, err);
        let transport = Transport::new(network(settings)).map_err(failed)?;
        let hosts = settings.values.web_allow_hosts.iter().flatten();
        let allowed = hosts.map(|host| AllowedHost::parse(host));
        let allowed = allowed.collect::<std::result::Result<Vec<_>, _>>();
        let allowed = allowed.map_err(|err| {
            SetupError::because(SetupErrorKind::Config, "`web_allow_hosts` is invalid", err)
        })?;
        let egress = Egress::new(transport.clone(), allowed);
        let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(WebFetch::new(egress, reader()))];
        if let Some(engine) = engine(settings)? {
            let search = WebSearch::new(transport, engine).map_err(|err| {
                SetupError::because(SetupErrorKind::Config, "`web_search_url` is invalid", err)
            })?;
            tools.push(Arc::new(search));
        }
        Ok(tools)
    }

    fn engine(settings: &Settings) -> Result<Option<SearchEngine>> {
        let values = &settings.values;
        let missing = |what: &str, hint: &str| {
            let text = format!("`web_search` is {what}");
            SetupError::new(SetupErrorKind::Config, text).hint(hint)
        };
        Ok(match values.web_search {
            None | Some(WebSearchChoice::Off | WebSearchChoice::Model) => None,
            Some(WebSearchChoice::Brave) => {
                let key = BRAVE_KEYS.iter().find_map(|name| settings.env.text(name));
                let key = key.ok_or_else(|| {
                    missing(
                        "`brave`, and there is no key for it",
                        "export BRAVE_API_KEY=...",
                    )
                })?;
                let url = values.web_search_url.as_deref();
                Some(SearchEngine::Brave {
                    url: url.unwrap_or(BRAVE_URL).to_owned(),
                    key: Secret::new(key),
                })
            }
            Some(WebSearchChoice::Searxng) => {
                let url = values.web_search_url.clone();
                let url = url.ok_or_else(|| {
                    missing(
                        "`searxng`, and there is no address of an instance",
                        "`rondo config set web_search_url https://...`",
                    )
                })?;
                Some(SearchEngine::SearXng { url })
            }
        })
    }

    fn reader() -> Reader {
        Reader::new(SupervisorCommand::CurrentExe)
    }

    pub(super) fn documents() -> Option<Arc<dyn DocumentReader>> {
        Some(Arc::new(Pdfs(reader())))
    }

    /// Reads PDFs for file tools.
    #[derive(Debug)]
    struct Pdfs(Reader);

    #[async_trait]
    impl DocumentReader for Pdfs {
        async fn pdf(&self, bytes: Vec<u8>) -> std::result::Result<DocumentText, String> {
            let read = self.0.read(&Document::Pdf, &bytes).await;
            let read = read.map_err(|err| err.to_string())?;
            let pages = read.pages.unwrap_or_default();
            let mut note = format!("a PDF of {pages} pages");
            if !read.unreadable.is_empty() {
                note.push_str(&format!(", of which {:?} cannot be read,", read.unreadable));
            }
            if read.is_cut {
                note.push_str(", its beginning");
            }
            let text = read.text;
            Ok(DocumentText { text, note })
        }
    }
}

/// Returns whether this version has a tool of that name.
pub(crate) fn has(name: &str) -> bool {
    parts::NAMES.contains(&name)
}

/// Returns the tools: the one that reads pages, and the one that searches if the settings name an engine.
///
/// # Errors
/// When a setting about them is invalid.
pub(crate) fn tools(settings: &Settings) -> Result<Vec<Arc<dyn Tool>>> {
    parts::tools(settings)
}

/// Returns the reader of PDFs for file tools.
pub(crate) fn documents() -> Option<Arc<dyn DocumentReader>> {
    parts::documents()
}
