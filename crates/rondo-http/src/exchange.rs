//! One request and its reply over HTTP, from encoding to the last event.

use crate::base_url::BaseUrl;
use crate::client::{NetworkError, Response, Sending};
use crate::compressed::{INPUT_BYTES_MAX, Inflater, inflated};
use crate::conversations::Conversations;
use crate::failure::{Stage, network_error, redirect_error, setup_error, unsendable_error};
use crate::limit::Slot;
use crate::pieces::Pieces;
use crate::secret::{Secret, scrub};
use crate::{RequestLimit, Transport, address};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use hyper::http::{Uri, request};
use hyper::{Method, Request};
use rondo_core::ModelStream;
use rondo_types::{ModelError, ModelEvent, ModelRequest, TimeMs, ToolSpec};
use rondo_wire::{Bounds, Decoder, Dialect, Target};
use std::collections::VecDeque;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

/// The bound on the part of an error's body that is read.
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
/// How long an error's body is waited for; what came by then is used.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of a body is waited for once the protocol's own end was read. It spares the
/// next request a new connection, which is not worth more.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);
/// How often empty progress of the server is reported. The waits that this extends are longer.
const KEPT_ALIVE_EVERY: Duration = Duration::from_secs(1);
/// How long the protocol's end is waited for behind a finish reason. Token counts still come there,
/// and they come at once; a server that then keeps the body open does not take the answer back.
const END_GRACE: Duration = Duration::from_secs(2);

/// State that all requests of one model share.
pub(crate) struct Link {
    pub(crate) transport: Transport,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) target: Target,
    pub(crate) bounds: Bounds,
    pub(crate) base_url: BaseUrl,
    pub(crate) headers: HeaderMap,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) conversations: Conversations,
}

/// Opens the stream of one request; nothing happens before it is polled.
pub(crate) fn open(
    link: Arc<Link>,
    limit: Option<RequestLimit>,
    request: Arc<ModelRequest>,
) -> ModelStream {
    Box::pin(Exchange {
        link,
        pending: VecDeque::new(),
        slot: None,
        phase: match limit {
            Some(limit) => Phase::New(limit, request),
            None => Phase::Unsent(request),
        },
    })
}

/// Written as a state machine by hand: a future for each event would be made, moved and dropped a
/// thousand times a reply, and each would be as large as all that sending needs.
struct Exchange {
    link: Arc<Link>,
    /// At most the events of one piece of the body.
    pending: VecDeque<ModelEvent>,
    /// Held until the exchange is over.
    slot: Option<Slot>,
    phase: Phase,
}

enum Phase {
    New(RequestLimit, Arc<ModelRequest>),
    /// As many requests as may be are under way.
    Queued(BoxFuture<'static, Option<Slot>>, Arc<ModelRequest>),
    Unsent(Arc<ModelRequest>),
    /// The client for https is built.
    Waiting(BoxFuture<'static, Result<(), ModelError>>, Box<Outgoing>),
    Sending(Sending, Arc<Vec<ToolSpec>>, Uri),
    /// The body of an error is read.
    Refused(BoxFuture<'static, ModelError>),
    Reading(Body),
    /// The reply is whole; the rest of the body is ignored.
    Draining(Response, Timer),
    Failed(ModelError),
    Done,
}

/// A response that is a success.
pub(crate) struct Success {
    pub(crate) response: Response,
    /// Decompresses a body that the server compressed without being asked.
    pub(crate) inflater: Option<Box<Inflater>>,
}

/// Outcome of a request.
enum Answer {
    Success(Success),
    Refusal(BoxFuture<'static, ModelError>),
}

/// A request that is ready to be sent, and the tools that it offers.
struct Outgoing {
    request: Request<Pieces>,
    tools: Arc<Vec<ToolSpec>>,
}

/// A body that is read.
struct Body {
    response: Response,
    /// Decompresses a body that the server compressed without being asked.
    inflater: Option<Box<Inflater>>,
    decoder: Box<dyn Decoder>,
    /// When the reply counts as it is; set once it is whole.
    end_by: Option<Timer>,
    /// When the latest event was sent; none before the first one.
    told_at: Option<Instant>,
}

/// An instant that is waited for only if there is nothing else to do.
struct Timer {
    at: Instant,
    /// Set if other tasks had their turn since.
    has_yielded: bool,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    fn after(duration: Duration) -> Self {
        Self {
            at: Instant::now() + duration,
            has_yielded: false,
            sleep: None,
        }
    }

    /// The end that is waited for is usually there already, and the connection's task is about to tell: to let it run costs
    /// less than to set a timer.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.has_yielded, true) && Instant::now() < self.at {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(sleep_until(self.at)));
        // Input that was read before it may have used up the share of one turn that the runtime gives a task.
        pin!(unconstrained(sleep.as_mut())).poll(cx)
    }
}

impl Stream for Exchange {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(event) = this.pending.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            let next = match &mut this.phase {
                Phase::New(limit, request) => {
                    let (limit, request) = (limit.clone(), Arc::clone(request));
                    this.enter(limit, request)
                }
                Phase::Queued(entering, request) => {
                    this.slot = ready!(entering.as_mut().poll(cx));
                    this.pending.push_back(ModelEvent::Sent);
                    Phase::Unsent(Arc::clone(request))
                }
                Phase::Unsent(request) => match this.link.outgoing(request) {
                    Ok(outgoing) => this.send(outgoing),
                    Err(error) => Phase::Failed(error),
                },
                Phase::Waiting(building, _) => {
                    let built = ready!(building.as_mut().poll(cx));
                    this.go_on(built)
                }
                Phase::Sending(sending, _, uri) => {
                    let sent = ready!(Pin::new(sending).poll(cx));
                    let answer = this.link.judged(uri, sent);
                    this.answered(answer)
                }
                Phase::Refused(refusal) => Phase::Failed(ready!(refusal.as_mut().poll(cx))),
                Phase::Reading(body) => {
                    match ready!(body.poll(&this.link, &mut this.pending, cx)) {
                        Ok(true) => continue,
                        Ok(false) => this.drain(),
                        Err(error) => Phase::Failed(error),
                    }
                }
                Phase::Draining(response, timer) => {
                    ready!(poll_drain(response, timer, cx));
                    Phase::Done
                }
                Phase::Failed(_) => {
                    let failed = std::mem::replace(&mut this.phase, Phase::Done);
                    let Phase::Failed(error) = failed else {
                        continue;
                    };
                    this.slot = None;
                    return Poll::Ready(Some(Err(this.link.scrubbed(error))));
                }
                Phase::Done => {
                    this.slot = None;
                    return Poll::Ready(None);
                }
            };
            this.phase = next;
        }
    }
}

impl Exchange {
    fn enter(&mut self, limit: RequestLimit, request: Arc<ModelRequest>) -> Phase {
        self.slot = limit.try_enter();
        if self.slot.is_some() {
            return Phase::Unsent(request);
        }
        self.pending.push_back(ModelEvent::Queued);
        Phase::Queued(async move { limit.enter().await }.boxed(), request)
    }

    /// Sends a request, once there is a client for it.
    fn send(&mut self, outgoing: Outgoing) -> Phase {
        let Outgoing { request, tools } = outgoing;
        let uri = request.uri().clone();
        if let Some(client) = self.link.transport.built(&uri) {
            return Phase::Sending(client.send(request), tools, uri);
        }
        let link = Arc::clone(&self.link);
        let building = async move {
            let built = link.transport.client(&uri).await;
            built.map(drop).map_err(|error| setup_error(&error))
        };
        Phase::Waiting(building.boxed(), Box::new(Outgoing { request, tools }))
    }

    fn go_on(&mut self, built: Result<(), ModelError>) -> Phase {
        match (std::mem::replace(&mut self.phase, Phase::Done), built) {
            (Phase::Waiting(_, outgoing), Ok(())) => self.send(*outgoing),
            (_, Err(error)) => Phase::Failed(error),
            (phase, Ok(())) => phase,
        }
    }

    fn answered(&mut self, answer: Result<Answer, ModelError>) -> Phase {
        match (std::mem::replace(&mut self.phase, Phase::Done), answer) {
            (Phase::Sending(_, tools, _), Ok(Answer::Success(success))) => Phase::Reading(Body {
                response: success.response,
                inflater: success.inflater,
                decoder: self.link.decoder(tools),
                end_by: None,
                told_at: None,
            }),
            (_, Ok(Answer::Refusal(refusal))) => Phase::Refused(refusal),
            (_, Err(error)) => Phase::Failed(error),
            (phase, _) => phase,
        }
    }

    /// The protocol's end was read. If the body did not end with it, its end is waited for.
    fn drain(&mut self) -> Phase {
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Reading(body) if !body.response.is_read() => {
                Phase::Draining(body.response, Timer::after(DRAIN_TIMEOUT))
            }
            _ => Phase::Done,
        }
    }
}

impl Body {
    /// Reads one piece, and returns whether there is more to come. Events before a failure are
    /// delivered before it.
    fn poll(
        &mut self,
        link: &Link,
        pending: &mut VecDeque<ModelEvent>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<bool, ModelError>> {
        let piece = match (self.response.poll_chunk(cx), &mut self.end_by) {
            (Poll::Ready(piece), timer) => {
                // More may follow it at once.
                timer.iter_mut().for_each(|it| it.has_yielded = false);
                piece
            }
            (Poll::Pending, Some(timer)) => {
                ready!(timer.poll(cx));
                return Poll::Ready(self.conclude(pending));
            }
            (Poll::Pending, None) => return Poll::Pending,
        };
        match piece {
            Ok(piece) => Poll::Ready(self.take(piece.as_deref(), pending)),
            // Nothing that was said can be missing.
            Err(_) if self.decoder.is_whole() => Poll::Ready(self.conclude(pending)),
            Err(error) => Poll::Ready(Err(link.network_error(&error, Stage::Reading))),
        }
    }

    fn take(
        &mut self,
        piece: Option<&[u8]>,
        pending: &mut VecDeque<ModelEvent>,
    ) -> Result<bool, ModelError> {
        let mut events = Vec::from(std::mem::take(pending));
        let more = match piece {
            Some(bytes) => self.push(bytes, &mut events),
            None => Ok(false),
        };
        let decoder = &mut self.decoder;
        let more = match more {
            Ok(false) => decoder.finish(&mut events).map(|()| false),
            other => other,
        };
        if decoder.is_whole() && (self.end_by.is_none() || says_more(&events)) {
            self.end_by = Some(Timer::after(END_GRACE));
        }
        if matches!(more, Ok(true)) {
            self.note_life(&mut events);
        }
        *pending = events.into();
        more
    }

    /// Hands a piece to the decoder, decompressed, and returns whether there is more to come.
    fn push(&mut self, piece: &[u8], events: &mut Vec<ModelEvent>) -> Result<bool, ModelError> {
        match &mut self.inflater {
            None => self.decoder.push(piece, events)?,
            Some(inflater) => {
                for piece in piece.chunks(INPUT_BYTES_MAX) {
                    self.decoder.push(&inflater.push(piece)?, events)?;
                }
            }
        }
        Ok(!self.decoder.ended())
    }

    /// Adds an event that the server is alive, if for a while there was no event. Before the first one, nothing has
    /// begun.
    fn note_life(&mut self, events: &mut Vec<ModelEvent>) {
        let now = Instant::now();
        let is_due = |at: Instant| now.duration_since(at) >= KEPT_ALIVE_EVERY;
        if events.is_empty() && self.told_at.is_some_and(is_due) {
            events.push(ModelEvent::KeptAlive);
        }
        if !events.is_empty() {
            self.told_at = Some(now);
        }
    }

    /// Ends a whole reply whose body did not end.
    fn conclude(&mut self, pending: &mut VecDeque<ModelEvent>) -> Result<bool, ModelError> {
        tracing::debug!("the server did not end the body of a whole reply");
        self.response.abandon();
        let mut events = Vec::new();
        let concluded = self.decoder.conclude(&mut events);
        pending.extend(events);
        concluded.map(|()| false)
    }
}

impl Link {
    fn outgoing(&self, request: &ModelRequest) -> Result<Outgoing, ModelError> {
        let mut kept = self.conversations.take(&request.messages);
        let encoded = self.dialect.encode_onto(&mut kept, request, &self.target);
        self.conversations.put(kept);
        for note in &encoded.notes {
            tracing::debug!(?note, "the request was lowered");
        }
        let builder = Request::builder()
            .method(Method::POST)
            .uri(self.uri(&encoded.path)?)
            .header(ACCEPT, accept(self.target.streaming))
            .header(CONTENT_TYPE, "application/json");
        Ok(Outgoing {
            request: self.signed(builder, encoded.body)?,
            tools: Arc::clone(&request.tools),
        })
    }

    fn decoder(&self, tools: Arc<Vec<ToolSpec>>) -> Box<dyn Decoder> {
        let target = Target {
            tools,
            ..self.target.clone()
        };
        self.dialect.decoder(&target, self.bounds)
    }

    /// Adds body and headers of one's own, the key among them. The body is in pieces; there is none
    /// if there are no pieces.
    pub(crate) fn signed(
        &self,
        builder: request::Builder,
        body: Vec<Bytes>,
    ) -> Result<Request<Pieces>, ModelError> {
        let mut request = builder
            .body(Pieces::from(body))
            .map_err(|error| unsendable_error(&error.to_string()))?;
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }

    pub(crate) fn uri(&self, path: &str) -> Result<Uri, ModelError> {
        let uri = self.base_url.uri(path);
        uri.ok_or_else(|| unsendable_error("its address is too long"))
    }

    /// Sends a request and returns its response if it is a success.
    pub(crate) async fn send(
        self: &Arc<Self>,
        request: Request<Pieces>,
    ) -> Result<Success, ModelError> {
        let uri = request.uri().clone();
        let client = self.transport.client(&uri).await;
        let sent = client.map_err(|error| setup_error(&error))?.send(request);
        match self.judged(&uri, sent.await)? {
            Answer::Success(success) => Ok(success),
            Answer::Refusal(refusal) => Err(refusal.await),
        }
    }

    /// Tells a success from all else.
    ///
    /// A connection that ends before it answers is a failure also if it was kept from an earlier
    /// request: how much of this one the server took up cannot be known, so whether to repeat it is
    /// the turn's decision, which is recorded.
    fn judged(
        self: &Arc<Self>,
        uri: &Uri,
        sent: Result<Response, NetworkError>,
    ) -> Result<Answer, ModelError> {
        let mut response = sent.map_err(|error| self.network_error(&error, Stage::Sending))?;
        let status = response.status();
        tracing::debug!(
            status = status.as_u16(),
            version = ?response.version(),
            "the head of the reply is there"
        );
        if status.is_success() {
            let inflater = Inflater::of(response.headers())?.map(Box::new);
            response.forget_headers();
            return Ok(Answer::Success(Success { response, inflater }));
        }
        if status.is_redirection() {
            return Err(self.redirected(uri, &response));
        }
        let link = Arc::clone(self);
        let refusal = async move { link.refused(response).await };
        Ok(Answer::Refusal(refusal.boxed()))
    }

    fn redirected(&self, uri: &Uri, response: &Response) -> ModelError {
        let target = response
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| address::resolve(uri, text))
            .and_then(|target| address::origin(&target));
        redirect_error(
            response.status().as_u16(),
            target.as_deref(),
            &self.base_url,
        )
    }

    async fn refused(&self, response: Response) -> ModelError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let header = |name: &str| text(headers.get(name));
        let body = error_body(response).await;
        let body = inflated(&headers, body, ERROR_BODY_BYTES_MAX);
        self.dialect.error(status, &header, &body, now())
    }

    pub(crate) fn network_error(&self, error: &NetworkError, stage: Stage) -> ModelError {
        let timeout = self.transport.network().connect_timeout;
        network_error(error, stage, &self.base_url, timeout)
    }

    pub(crate) fn scrubbed(&self, mut error: ModelError) -> ModelError {
        scrub(&mut error.message, &self.secrets);
        error
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("origin", &self.target.origin)
            .field("base_url", &self.base_url.name())
            .finish_non_exhaustive()
    }
}

/// Returns whether the reply continued. Counts alone do not hold up its end.
fn says_more(events: &[ModelEvent]) -> bool {
    let more = |event: &ModelEvent| !matches!(event, ModelEvent::Usage(_));
    events.iter().any(more)
}

/// Reads the rest of a body, for as long as the timer lets it.
fn poll_drain(response: &mut Response, timer: &mut Timer, cx: &mut Context<'_>) -> Poll<()> {
    while let Poll::Ready(piece) = response.poll_chunk(cx) {
        if !matches!(piece, Ok(Some(_))) {
            return Poll::Ready(());
        }
    }
    ready!(timer.poll(cx));
    tracing::debug!("the server did not end the body of a whole reply");
    Poll::Ready(())
}

async fn error_body(mut response: Response) -> Vec<u8> {
    let deadline = Instant::now() + ERROR_BODY_TIMEOUT;
    let mut body = Vec::new();
    while body.len() < ERROR_BODY_BYTES_MAX
        && let Ok(Ok(Some(piece))) = timeout_at(deadline, response.chunk()).await
    {
        body.extend_from_slice(&piece);
    }
    body.truncate(ERROR_BODY_BYTES_MAX);
    body
}

fn accept(streaming: bool) -> &'static str {
    if streaming {
        "text/event-stream, application/json"
    } else {
        "application/json"
    }
}

fn text(value: Option<&HeaderValue>) -> Option<String> {
    value?.to_str().ok().map(str::to_owned)
}

fn now() -> TimeMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    TimeMs(since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }))
}
