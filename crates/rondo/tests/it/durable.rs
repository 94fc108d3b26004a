//! Sessions that are kept in a file and opened again.

use rondo::journal::{Options, Store};
use rondo::rondo_core::ports::MemoryBudget;
use rondo::{
    Agent, AgentBuilder, Endpoint, EventBody, HttpModel, MemoryJournal, ModelCard, NoArgs,
    OpenError, QuestionReply, Session, SessionId, StoreError, TurnError,
};
use rondo_testkit::{CallScript, ReplyScript, Response, Server, assert_paired, openai};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn model(server: &Server, name: &str) -> HttpModel {
    let endpoint = Endpoint::new("local", "openai-chat", server.url("/v1"));
    HttpModel::new(&endpoint, ModelCard::new(name)).unwrap()
}

fn says(text: &str) -> Response {
    openai::streamed(&ReplyScript::text([text]))
}

fn calls(name: &str) -> Response {
    openai::streamed(&ReplyScript::calls([CallScript::new(
        "c",
        name,
        &json!({}),
    )]))
}

#[derive(Clone, Default)]
struct Counts {
    paid: Arc<AtomicU32>,
    looked: Arc<AtomicU32>,
}

impl Counts {
    /// An agent that pays, then looks; its first look never ends.
    fn agent(&self, server: &Server) -> Agent {
        self.builder(server).build().unwrap()
    }

    fn builder(&self, server: &Server) -> AgentBuilder {
        let Self { paid, looked } = self.clone();
        let pay = rondo::tool("pay", "Pays.", move |_: NoArgs, _cx| {
            paid.fetch_add(1, Ordering::Relaxed);
            async { Ok::<_, std::convert::Infallible>("paid") }
        });
        let look = rondo::tool("look", "Looks.", move |_: NoArgs, _cx| {
            let is_first = looked.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                match is_first {
                    true => std::future::pending().await,
                    false => Ok::<_, std::convert::Infallible>("seen"),
                }
            }
        });
        let agent = Agent::builder(model(server, "m"));
        agent.tool(pay).tool(look.read_only())
    }

    fn both(&self) -> (u32, u32) {
        let count = |it: &AtomicU32| it.load(Ordering::Relaxed);
        (count(&self.paid), count(&self.looked))
    }
}

/// Runs a turn until it has paid and looks, and drops it there.
async fn cut_off(session: Session, counts: &Counts) {
    let (_, looked) = counts.both();
    let mut turn = session.start("Pay, then look.");
    let mut begun = 0;
    while begun < 2 {
        let event = turn.next().await.unwrap();
        begun += u32::from(matches!(event.body, EventBody::ToolCallStarted { .. }));
    }
    // The event comes before the tool itself.
    while counts.both().1 == looked {
        tokio::task::yield_now().await;
    }
    drop(turn);
    // The turn's task is gone once the session is free.
    session.transcript().await;
}

/// Opens a session, as soon as what was dropped has let go of it.
async fn open(agent: &Agent, store: &Store, id: &str) -> Session {
    loop {
        match agent.open_session(store, id).await {
            Err(OpenError::Store(StoreError::InUse { .. })) => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}

#[tokio::test]
async fn a_turn_that_was_dropped_is_carried_on_by_another_agent() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let counts = Counts::default();

    let first = Server::start([says("Hello."), calls("pay"), calls("look")]).await;
    let agent = counts.agent(&first);
    let session = agent.open_session(&store, "till").await.unwrap();
    assert!(session.resume().is_none());
    session.run("Hi.").await.unwrap();
    cut_off(session, &counts).await;
    assert_eq!((first.requests().len(), counts.both()), (3, (1, 1)));

    let second = Server::start([says("It is done."), says("Two.")]).await;
    let session = open(&counts.agent(&second), &store, "till").await;
    let outcome = session.resume().unwrap().outcome().await.unwrap();
    assert_eq!(
        (outcome.text.as_str(), outcome.tool_calls),
        ("It is done.", 2)
    );
    // What was paid is not paid again; what only looks and did not end, looks again.
    assert_eq!((second.requests().len(), counts.both()), (1, (1, 2)));
    let body = second.requests()[0].json();
    assert_paired(&body);
    let body = body.to_string();
    assert!(body.contains("paid") && body.contains("seen") && body.contains("Hello."));

    assert!(session.resume().is_none());
    assert_eq!(session.run("How many?").await.unwrap().text, "Two.");
    let said = session.transcript().await;
    drop(session);
    let session = open(&agent, &store, "till").await;
    assert!(session.resume().is_none());
    assert_eq!(session.transcript().await, said);
}

#[tokio::test]
async fn a_session_whose_turn_was_dropped_goes_on_in_the_same_process() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let counts = Counts::default();
    let server = Server::start([calls("pay"), calls("look"), says("Yes.")]).await;
    let agent = counts.agent(&server);
    let session = agent.begin_session(&store).await.unwrap();
    cut_off(session.clone(), &counts).await;
    assert_eq!(session.run("Are you there?").await.unwrap().text, "Yes.");
    let (id, said) = (session.id().to_string(), session.transcript().await);
    drop(session);
    let session = open(&agent, &store, &id).await;
    assert!(session.resume().is_none());
    // The message, two calls with their results, the next message and its answer.
    assert_eq!((said.len(), session.transcript().await), (7, said));
    let body = server.requests()[2].json();
    assert_paired(&body);
    assert!(body.to_string().contains("paid"), "{body}");
}

#[tokio::test]
async fn what_was_cut_off_may_be_left_and_other_models_cannot_carry_it_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let counts = Counts::default();
    let server = Server::start([calls("pay"), calls("look"), says("Paid, yes.")]).await;
    let agent = counts.agent(&server);
    cut_off(agent.open_session(&store, "till").await.unwrap(), &counts).await;

    let other = Agent::builder(model(&server, "other")).build().unwrap();
    let session = open(&other, &store, "till").await;
    let error = session.resume().unwrap().outcome().await.unwrap_err();
    assert!(matches!(error, TurnError::Resume(_)), "{error}");

    let taken = agent.open_session(&store, "till").await.unwrap_err();
    assert!(
        matches!(taken, OpenError::Store(StoreError::InUse { .. })),
        "{taken}"
    );
    drop(session);
    let session = open(&agent, &store, "till").await;
    assert_eq!(session.run("Is it paid?").await.unwrap().text, "Paid, yes.");
    let body = server.requests()[2].json();
    assert_paired(&body);
    assert!(body.to_string().contains("Pay, then look."), "{body}");
    assert!(session.resume().is_none());
}

#[tokio::test]
async fn the_records_of_any_journal_are_enough_to_carry_on() {
    let counts = Counts::default();
    let server = Server::start([calls("pay"), calls("look"), says("It is done.")]).await;
    let agent = counts.agent(&server);
    let journal = Arc::new(MemoryJournal::default());
    let session = agent.session_named("till").with_journal(journal.clone());
    cut_off(session, &counts).await;
    let session = agent.session_named("till").with_journal(journal.clone());
    let session = session.with_records(&journal.records());
    let outcome = session.resume().unwrap().outcome().await.unwrap();
    assert_eq!(
        (outcome.text.as_str(), counts.both()),
        ("It is done.", (1, 2))
    );
}

#[tokio::test]
async fn sessions_that_begin_later_sort_behind() {
    let server = Server::start([says("never asked")]).await;
    let agent = Agent::builder(model(&server, "m")).build().unwrap();
    let time = |session: &Session| session.id().as_str().split('-').nth(1).map(str::to_owned);
    let (first, second) = (agent.session(), agent.session());
    assert_ne!(first.id(), second.id());
    assert!(time(&first) <= time(&second));
    // Milliseconds since 1970 have eleven hexadecimal digits from 2004 to 2527.
    assert_eq!(time(&first).unwrap().len(), 11);
}

#[tokio::test]
async fn a_session_is_listed_by_its_first_message_and_its_directory() {
    let (dir, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let server = Server::start([says("Yes."), says("No.")]).await;
    let agent = Agent::builder(model(&server, "m")).files(files.path());
    let agent = agent.build().unwrap();
    let session = agent.open_session(&store, "till").await.unwrap();
    session.run("Is it\n paid?").await.unwrap();
    session.run("Is it not?").await.unwrap();
    let listed = store.sessions(9).unwrap();
    let [only] = &listed[..] else {
        panic!("{listed:?}")
    };
    let directory = files.path().canonicalize().unwrap();
    assert_eq!(only.title, "Is it paid?");
    assert_eq!(only.directory, directory.display().to_string());
}

#[tokio::test]
async fn a_dropped_turn_is_carried_on_once_its_session_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let counts = Counts::default();
    let server = Server::start([calls("pay"), calls("look"), says("It is done.")]).await;
    let agent = counts.agent(&server);
    let session = agent.open_session(&store, "till").await.unwrap();
    cut_off(session.clone(), &counts).await;
    drop(session);
    let session = open(&agent, &store, "till").await;
    let outcome = session.resume().unwrap().outcome().await.unwrap();
    assert_eq!(outcome.text, "It is done.");
    assert_eq!(counts.both(), (1, 2));
}

#[tokio::test]
async fn a_dropped_turn_is_carried_on_by_the_session_that_dropped_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let counts = Counts::default();
    let server = Server::start([calls("pay"), calls("look"), says("It is done.")]).await;
    let budget = Arc::new(MemoryBudget::new(Some(1_000_000), None));
    let agent = counts.builder(&server).budget(Arc::clone(&budget) as _);
    let agent = agent.build().unwrap();
    let session = agent.open_session(&store, "till").await.unwrap();
    cut_off(session.clone(), &counts).await;
    let outcome = session.resume().unwrap().outcome().await.unwrap();
    assert_eq!(
        (outcome.text.as_str(), counts.both()),
        ("It is done.", (1, 2))
    );
    assert!(session.resume().is_none());
    assert_eq!(session.transcript().await, outcome.transcript);
    let said = outcome.transcript;
    drop(session);
    let session = agent.open_session(&store, "till").await.unwrap();
    assert_eq!(session.transcript().await, said);
    assert_eq!(budget.committed(), budget.used());
}

/// Puts every question off until it was asked often enough.
struct Later(AtomicU32);

#[async_trait::async_trait]
impl rondo::Approver for Later {
    async fn ask(&self, question: &rondo::Question) -> QuestionReply {
        match self.0.fetch_sub(1, Ordering::Relaxed) {
            0 => QuestionReply::approved(question, "ada"),
            _ => QuestionReply::Later { expires: None },
        }
    }
}

fn paying(server: &Server, paid: &Arc<AtomicU32>, later: u32) -> Agent {
    let paid = Arc::clone(paid);
    let pay = rondo::tool("pay", "Pays.", move |_: NoArgs, _cx| {
        paid.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, std::convert::Infallible>("paid") }
    });
    let agent = Agent::builder(model(server, "m"))
        .tool(pay)
        .gate(AsksAlways);
    agent
        .approver(Later(AtomicU32::new(later)))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_parked_turn_is_carried_on_in_the_same_process_as_often_as_it_is_parked() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let (paid, server) = (
        Arc::default(),
        Server::start([calls("pay"), says("Paid.")]).await,
    );
    let session = paying(&server, &paid, 2)
        .open_session(&store, "till")
        .await
        .unwrap();
    let parked = session.run("Pay.").await.unwrap_err();
    assert!(matches!(parked, TurnError::Parked { .. }), "{parked}");
    let parked = session.resume().unwrap().outcome().await.unwrap_err();
    assert!(matches!(parked, TurnError::Parked { .. }), "{parked}");
    let outcome = session.resume().unwrap().outcome().await.unwrap();
    assert_eq!(outcome.text, "Paid.");
    assert_eq!(paid.load(Ordering::Relaxed), 1);
    assert_eq!(session.transcript().await, outcome.transcript);
}

#[tokio::test]
async fn the_message_after_a_parked_turn_follows_what_it_has_said() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let (paid, server) = (
        Arc::default(),
        Server::start([calls("pay"), says("Not yet.")]).await,
    );
    let session = paying(&server, &paid, 9)
        .open_session(&store, "till")
        .await
        .unwrap();
    session.run("Pay for the tea.").await.unwrap_err();
    assert_eq!(session.run("Did you?").await.unwrap().text, "Not yet.");
    let body = server.requests()[1].json();
    assert_paired(&body);
    assert!(body.to_string().contains("Pay for the tea."), "{body}");
    let said = session.transcript().await;
    assert_eq!((said.len(), paid.load(Ordering::Relaxed)), (5, 0));
    drop(session);
    let session = open(&paying(&server, &paid, 9), &store, "till").await;
    assert_eq!(session.transcript().await, said);
}

#[tokio::test]
async fn a_dropped_run_gives_back_what_it_has_reserved() {
    let server = Server::start([rondo_testkit::faults::zero_byte_stall()]).await;
    let budget = Arc::new(MemoryBudget::new(Some(1_000_000), None));
    let agent = Agent::builder(model(&server, "m")).budget(Arc::clone(&budget) as _);
    let agent = agent.build().unwrap();
    let run = agent.start("Hi.");
    while budget.committed().tokens == 0 {
        tokio::task::yield_now().await;
    }
    drop(run);
    while budget.committed().tokens > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_turn_from_a_file_is_carried_on_only_where_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let counts = Counts::default();
    let server = Server::start([calls("pay"), calls("look"), says("Done.")]).await;
    let agent = counts.agent(&server);
    let session = agent.open_session(&store, "till").await.unwrap();
    cut_off(session, &counts).await;
    let mut file = Vec::new();
    store.export(&SessionId::new("till"), &mut file).unwrap();
    let copy = SessionId::new("copy");
    store.import(&mut file.as_slice(), Some(&copy)).unwrap();

    let session = open(&agent, &store, "copy").await;
    for _ in 0..2 {
        let error = session.resume().unwrap().outcome().await.unwrap_err();
        assert!(matches!(error, TurnError::Imported), "{error:?}");
    }
    assert_eq!(counts.both(), (1, 1));
    let outcome = session.resume_imported().unwrap().outcome().await.unwrap();
    assert_eq!(outcome.text, "Done.");
    assert_eq!(counts.both(), (1, 2));
    assert!(session.resume_imported().is_none());
}

/// Asks about every call.
struct AsksAlways;

#[async_trait::async_trait]
impl rondo::Gate for AsksAlways {
    async fn check(&self, _: &rondo::GateRequest) -> rondo::Verdict {
        let prompt = "run it?".to_owned();
        rondo::Verdict::Ask {
            prompt,
            reasons: Vec::new(),
        }
    }
}

#[tokio::test]
async fn a_call_that_waited_for_an_approval_when_its_turn_was_dropped_is_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default()).unwrap();
    let counts = Counts::default();
    let both = ["c1", "c2"].map(|id| CallScript::new(id, "pay", &json!({})));
    let server = Server::start([
        openai::streamed(&ReplyScript::calls(both)),
        says("Not paid."),
    ])
    .await;
    let paid = Arc::clone(&counts.paid);
    let pay = rondo::tool("pay", "Pays.", move |_: NoArgs, _cx| {
        paid.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, std::convert::Infallible>("paid") }
    });
    let agent = Agent::builder(model(&server, "m"))
        .tool(pay)
        .gate(AsksAlways)
        .approve_with(|_| std::future::pending())
        .build()
        .unwrap();
    let session = agent.open_session(&store, "till").await.unwrap();
    let mut run = session.start("Pay twice.");
    while let Some(event) = run.next().await {
        if matches!(event.body, EventBody::ApprovalRequested { .. }) {
            break;
        }
    }
    drop(run);
    session.transcript().await;
    drop(session);
    let session = open(&agent, &store, "till").await;
    assert_eq!(session.run("Is it paid?").await.unwrap().text, "Not paid.");
    let body = server.requests()[1].json();
    assert_paired(&body);
    let body = body.to_string();
    assert_eq!(body.matches("error (not_run)").count(), 2, "{body}");
    assert!(!body.contains("in_doubt"), "{body}");
    assert_eq!(counts.both(), (0, 0));
    let records = store.load(session.id()).unwrap();
    let replayed = rondo::rondo_core::replay::replay(
        session.id(),
        &records,
        &rondo::rondo_core::replay::Changes::default(),
    );
    let turns = replayed.unwrap().turns;
    assert!(turns.iter().all(|it| it.differences.is_empty()));
}
