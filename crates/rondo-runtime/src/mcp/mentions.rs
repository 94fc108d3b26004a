//! Resources that a message names as `@server:uri`: they are read, and go with it.

use crate::error::{Result, SetupError, SetupErrorKind};
use rondo_mcp::Servers;
use rondo_types::{Message, Part};

/// The bound on resources that go with one message.
const RESOURCES_MAX: usize = 16;

/// Reads the resources that a message names, and adds them to it, each in a block that says where it is from.
///
/// # Errors
/// When one cannot be read, or there are too many.
///
/// # Cancel safety
/// Cancel safe: requests are withdrawn.
pub(crate) async fn with_resources(mut message: Message, servers: &Servers) -> Result<Message> {
    let names = servers.names();
    let text = message.text();
    let found: Vec<(&str, &str)> = mentions(&text, &names).collect();
    if found.len() > RESOURCES_MAX {
        let what = format!("a message may name {RESOURCES_MAX} resources, and this one names more");
        return Err(SetupError::new(SetupErrorKind::Input, what));
    }
    for (server, uri) in found {
        let read = servers.resource(server, uri).await;
        let parts = read.map_err(|why| {
            let shown = rondo_core::shown::line(uri);
            let context = format!("failed to read the resource `{shown}` of the server `{server}`");
            SetupError::because(SetupErrorKind::Input, context, why)
        })?;
        let shown = rondo_core::shown::line(uri).replace('"', "'");
        message.parts.push(Part::text(format!(
            "\n\n<resource server=\"{server}\" uri=\"{shown}\">\n"
        )));
        message.parts.extend(parts);
        message.parts.push(Part::text("\n</resource>"));
    }
    Ok(message)
}

/// Returns the mentions in a text: words that begin with `@`, a server's name and a colon.
fn mentions<'a>(text: &'a str, names: &'a [String]) -> impl Iterator<Item = (&'a str, &'a str)> {
    text.split_whitespace().filter_map(move |word| {
        let (server, uri) = word.strip_prefix('@')?.split_once(':')?;
        let uri = uri.trim_end_matches([',', ';', '?', '!', '.', ')']);
        (!uri.is_empty() && names.iter().any(|it| it == server)).then_some((server, uri))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_a_resource_are_found_and_others_stay_words() {
        let names = ["docs".to_owned(), "git".to_owned()];
        let text =
            "read @docs:file:///a/b.md, and @git:repo://x?y=1. me@docs:x @other:y @docs: (@docs:z)";
        let found: Vec<_> = mentions(text, &names).collect();
        assert_eq!(found, [("docs", "file:///a/b.md"), ("git", "repo://x?y=1")]);
    }
}
