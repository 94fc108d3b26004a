//! The port to models: a request in, a stream of events out.

use futures_util::Stream;
use rondo_types::{ModelError, ModelEvent, ModelInfo, ModelRequest, ServerAddress};
use std::pin::Pin;
use std::sync::Arc;

/// The events of one reply.
///
/// Ends after the last event of a reply that ended as its protocol ends. A reply that was cut off
/// or broke ends with an `Err`, after which nothing follows.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// Something that answers requests: a provider behind its dialect, an embedded model, a recording.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a model",
    note = "build one for a server with `HttpModel::new`, or implement `Model`; a model that is shared is an `Arc<dyn Model>`"
)]
pub trait Model: Send + Sync {
    /// Returns the properties of the model that are known before it is asked.
    fn info(&self) -> ModelInfo;

    /// Returns the server's address for telemetry, or `None` for a model in this process.
    fn server(&self) -> Option<ServerAddress> {
        None
    }

    /// Returns the base URL that requests go to, without credentials and query, for the record of the
    /// turn; `None` for a model without a server.
    fn base_url(&self) -> Option<String> {
        None
    }

    /// Returns whether the search of the web that this model is to offer would be left out of a request, since its protocol
    /// has none or the provider refuses it beside tools. [`Model::stream`] only notes that.
    fn drops_web_search(&self, has_tools: bool) -> bool {
        let _ = has_tools;
        false
    }

    /// Sends one request. Nothing happens before the stream is first polled.
    ///
    /// No timers and no repetition here: the driver bounds the wait for the first event, between
    /// events and as a whole, and the machine decides on repetition. Pings are not content, and at most
    /// [`ModelEvent::KeptAlive`].
    ///
    /// # Cancel safety
    /// Dropping the stream ends the request.
    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn info(&self) -> ModelInfo {
        (**self).info()
    }

    fn server(&self) -> Option<ServerAddress> {
        (**self).server()
    }

    fn base_url(&self) -> Option<String> {
        (**self).base_url()
    }

    fn drops_web_search(&self, has_tools: bool) -> bool {
        (**self).drops_web_search(has_tools)
    }

    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        (**self).stream(request)
    }
}
