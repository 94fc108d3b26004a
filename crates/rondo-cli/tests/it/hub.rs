//! `rondo serve` as its users meet it: started, written to from a terminal, and stopped.

use crate::harness::{TestEnv, calls, says, serve};
use rondo_testkit::{CallScript, ReplyScript, Response, Script, Server, openai};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::Child;

/// The tests' patience: what takes longer has failed.
const LONG: Duration = Duration::from_secs(60);

/// A hub that is served; it is killed when dropped.
pub(crate) struct Served(Child);

impl Served {
    pub(crate) fn start(env: &TestEnv) -> Self {
        Self(env.command(&["serve"]).spawn().unwrap())
    }

    async fn told_to_stop(mut self) -> ExitStatus {
        let pid = self.0.id().and_then(|it| Pid::from_raw(it.cast_signed()));
        kill_process(pid.unwrap(), Signal::TERM).unwrap();
        let ended = tokio::time::timeout(LONG, self.0.wait()).await;
        ended.unwrap().unwrap()
    }
}

/// Sets up a hub that asks a model, on a port of its own, with an owner whose key is saved.
pub(crate) async fn set_up(model: &Server, more: &str) -> TestEnv {
    let env = TestEnv::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    env.user_config(&format!(
        "model = 'local/any'\nbase_url = '{}'\n{more}\n[hub.channels.api]\nlisten = '127.0.0.1:{port}'\n",
        model.url("/v1")
    ));
    let added = env.run(&["users", "add", "ada", "--role", "owner", "--save"]);
    assert_eq!(added.await.code, Some(0));
    env
}

/// Asks the hub as soon as it can be reached.
pub(crate) async fn ask(env: &TestEnv, said: &str) -> String {
    let mut last = None;
    let answered = tokio::time::timeout(LONG, async {
        loop {
            let shown = env.run(&["chat", said]).await;
            if shown.code == Some(0) {
                return shown.stdout;
            }
            last = Some(shown);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    answered.await.unwrap_or_else(|_| panic!("{last:?}"))
}

#[tokio::test]
async fn what_is_asked_at_a_terminal_is_answered_by_the_hub_that_is_served() {
    let look = calls("list_files", &json!({"path": "."}));
    let model = serve(vec![look, says("It is 4."), says("You asked for 2 + 2.")]).await;
    let env = set_up(&model, "").await;
    let hub = Served::start(&env);
    assert_eq!(ask(&env, "What is 2 + 2?").await, "It is 4.\n");
    assert_eq!(hub.told_to_stop().await.code(), Some(0));
    let hub = Served::start(&env);
    let answer = ask(&env, "What did I ask?").await;
    assert_eq!(answer, "You asked for 2 + 2.\n");
    assert_eq!(hub.told_to_stop().await.code(), Some(0));
    let last = model.requests().pop().unwrap().json().to_string();
    assert!(last.contains("What is 2 + 2?") && last.contains("It is 4."));
}

#[tokio::test]
async fn a_gateway_ends_and_says_why_if_its_port_is_taken_or_another_one_serves_its_data() {
    let model = serve(vec![says("Hello.")]).await;
    let env = set_up(&model, "").await;
    let hub = Served::start(&env);
    assert_eq!(ask(&env, "Hello?").await, "Hello.\n");
    let second = env.run(&["serve"]).await;
    assert_ne!(second.code, Some(0), "{second:?}");
    assert!(
        second.stderr.contains("is already serving the sessions in"),
        "{second:?}"
    );
    let other = TestEnv::new();
    let config = fs::read_to_string(env.home().join(".config/rondo/config.toml"));
    other.user_config(&config.unwrap());
    let taken = other.run(&["serve"]).await;
    assert_eq!(taken.code, Some(52), "{taken:?}");
    assert!(taken.stderr.contains("no channel can receive"), "{taken:?}");
    let logged = other.run(&["serve", "--log-format", "json"]).await;
    let mut lines = logged.stderr.lines();
    let line = lines.find_map(|it| serde_json::from_str::<Value>(it).ok());
    let line = line.unwrap();
    assert_eq!(
        (&line["level"], &line["channel"]),
        (&json!("ERROR"), &json!("api"))
    );
    assert!(
        line["message"]
            .as_str()
            .unwrap()
            .contains("cannot listen at"),
        "{line}"
    );
    assert_eq!(hub.told_to_stop().await.code(), Some(0));
}

#[tokio::test]
async fn a_check_finds_what_a_gateway_would_not_work_with() {
    let env = TestEnv::new();
    let sound = "model = 'local/any'\nbase_url = 'http://127.0.0.1:1/v1'\n";
    for (config, said) in [
        ("[hub]\nsteers = true", "steers"),
        ("[hub.channels.api]\nport = 1", "port"),
        ("[hub.channels.telegarm]", "there is no channel `telegarm`"),
        (
            "[hub.users.ann]\nrole = 'owner'\nids = ['telegarm:1']",
            "`telegarm:1` of `[hub.users.ann]` is on a channel that is not",
        ),
        (
            "[hub.users.ann]\nrole = 'owner'\nids = ['api:1']\n[hub.users.bob]\nrole = 'member'\nids = ['api:1']",
            "`api:1` is an id of both `[hub.users.ann]` and `[hub.users.bob]`",
        ),
        (
            "[hub.heartbeat]\nevery = '5m'\nchat = 'wire:1'",
            "on the channel `wire`",
        ),
        ("[profiles.hub]\nstraeming = true", "straeming"),
    ] {
        env.user_config(&format!("{sound}{config}\n"));
        let shown = env.run(&["serve", "--check"]).await;
        assert_eq!(shown.code, Some(52), "{config}: {shown:?}");
        assert!(shown.stderr.contains(said), "{config}: {shown:?}");
    }
    env.user_config("model = 'nowhere/m'\n");
    let shown = env.run(&["serve", "--check"]).await;
    assert!(
        shown.code != Some(0) && shown.stderr.contains("nowhere"),
        "{shown:?}"
    );
    env.user_config("model = 'openai/gpt-5'\n");
    let shown = env.run(&["serve", "--check"]).await;
    assert!(
        shown.code != Some(0) && shown.stderr.contains("has no key"),
        "{shown:?}"
    );
    env.user_config(sound);
    let shown = env.run(&["serve", "--check"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
}

#[tokio::test]
async fn the_timed_work_of_all_chats_is_listed() {
    let job = json!({"action": "add", "prompt": "Look at the plants.", "every_minutes": 20});
    let model = serve(vec![calls("cron", &job), says("Set.")]).await;
    let env = set_up(&model, "").await;
    let none = env.run(&["cron", "list"]).await;
    assert_eq!(none.stdout, "no scheduled jobs\n");
    let hub = Served::start(&env);
    assert_eq!(ask(&env, "Remind me.").await, "Set.\n");
    let listed = env.run(&["cron", "list"]).await;
    assert_eq!(hub.told_to_stop().await.code(), Some(0));
    assert!(listed.stdout.contains("  api:"), "{listed:?}");
    assert!(
        listed.stdout.ends_with(": Look at the plants.\n"),
        "{listed:?}"
    );
    let lines = env.run(&["cron", "list", "--json"]).await;
    let line: Value = serde_json::from_str(&lines.stdout).unwrap();
    assert_eq!(line["prompt"], "Look at the plants.");
}

#[tokio::test]
async fn a_saved_key_is_not_replaced_by_that_of_somebody_else() {
    let env = TestEnv::new();
    let add = async |name: &str| env.run(&["users", "add", name, "--save"]).await;
    assert_eq!(add("ada").await.code, Some(0));
    let refused = add("bob").await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(
        refused.stderr.contains("has the key of `ada`"),
        "{refused:?}"
    );
    let listed = env.run(&["users", "list"]).await;
    assert!(!listed.stdout.contains("bob"), "{listed:?}");
    let again = env.run(&["users", "key", "ada", "--save"]).await;
    assert_eq!(again.code, Some(0), "{again:?}");
}

#[tokio::test]
async fn no_address_of_this_machine_or_its_network_is_fetched_for_a_chat() {
    let inner = Server::start(Script::repeat(Response::text(200, "inner secret"))).await;
    let port = inner.address().port();
    let addresses = [
        inner.url("/"),
        format!("http://localhost:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://0.0.0.0:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://public.example@127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://10.0.0.1/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ];
    let fetches = addresses.iter().enumerate();
    let fetches = fetches.map(|(number, url)| {
        CallScript::new(&format!("c{number}"), "web_fetch", &json!({ "url": url }))
    });
    let fetches = openai::streamed(&ReplyScript::calls(fetches.collect::<Vec<_>>()).usage(1, 1));
    let refused = openai::streamed(&ReplyScript::text(["No."]).usage(1, 1));
    let model = Server::start([fetches, refused]).await;
    // No question is asked: what is left is what no approval allows.
    let env = set_up(&model, "yolo = true\nsandbox = 'off'").await;
    let _hub = Served::start(&env);
    assert_eq!(ask(&env, "Fetch these.").await, "No.\n");
    let request = model.requests().pop().unwrap().json();
    let messages = request["messages"].as_array().unwrap();
    let results: Vec<&Value> = messages.iter().filter(|it| it["role"] == "tool").collect();
    assert_eq!(results.len(), addresses.len());
    for (address, result) in addresses.iter().zip(&results) {
        let told = result["content"].to_string();
        let refusals = ["is not reached", "is not an address"];
        let is_refused = refusals.iter().any(|it| told.contains(it));
        assert!(is_refused, "{address}: {told}");
    }
    assert!(!request.to_string().contains("inner secret"));
    assert_eq!(inner.requests().len(), 0);
}

/// Waits until something holds.
async fn until(holds: impl AsyncFn() -> bool) {
    let waited = tokio::time::timeout(LONG, async { while !holds().await {} });
    waited.await.unwrap();
}

#[tokio::test]
async fn an_answer_at_a_terminal_lets_the_gateway_go_on_with_the_turn_of_its_chat() {
    let write = calls("write_file", &json!({"path": "note", "content": "x"}));
    let again = calls("write_file", &json!({"path": "note", "content": "y"}));
    let replies = vec![
        write,
        says("Written."),
        again,
        says("Again."),
        says("Hello."),
    ];
    let model = serve(replies).await;
    let env = set_up(&model, "").await;
    let hub = Served::start(&env);
    let parked = async || {
        let listed = env.run(&["session", "list", "--json"]).await.stdout;
        let sessions = listed
            .lines()
            .filter_map(|it| serde_json::from_str::<Value>(it).ok());
        let waits = sessions.into_iter().find(|it| it["state"] == "parked");
        waits.map(|it| it["id"].as_str().unwrap().to_owned())
    };
    let asks = async || {
        let asked = tokio::time::timeout(LONG, env.run(&["chat", "Write a note."])).await;
        let asked = asked.unwrap();
        if let Some(id) = parked().await {
            return id;
        }
        panic!("{asked:?}");
    };
    // Once it can be reached.
    assert!(ask(&env, "/help").await.contains("/approve"));
    let session = asks().await;
    let answered = env.run(&["answer", &session, "y"]).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert_eq!(
        answered.stderr,
        format!("note: the gateway goes on with session `{session}`\n")
    );
    assert_eq!(answered.stdout, "");
    until(async || parked().await.is_none() && model.requests().len() == 2).await;
    let session = asks().await;
    assert_eq!(hub.told_to_stop().await.code(), Some(0));
    let answered = env.run(&["answer", &session, "y"]).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert_eq!(
        answered.stderr,
        format!(
            "note: the answer is kept: session `{session}` goes on with it once `rondo serve` runs\n"
        )
    );
    assert_eq!(
        model.requests().len(),
        3,
        "nothing is asked at the terminal"
    );
    let hub = Served::start(&env);
    until(async || parked().await.is_none() && model.requests().len() == 4).await;
    assert_eq!(hub.told_to_stop().await.code(), Some(0));
}
