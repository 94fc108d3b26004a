//! A Bot API server and a model to try the hub by hand, without an account:
//!
//! ```text
//! $ cargo run -p rondo-testkit --example telegram
//! base_url = "http://127.0.0.1:40001"     for [hub.channels.telegram]
//! TELEGRAM_BOT_TOKEN=...                  and RONDO_BASE_URL=http://127.0.0.1:40002/v1 RONDO_MODEL=local/any
//! 7 hello                                 person 7 writes
//! 7 !Deny                                 person 7 presses a button below the last message
//! ```

use rondo_testkit::telegram::{BotServer, Place, SeenMessage};
use rondo_testkit::{ReplyScript, Script, Server, openai};
use std::io::{BufRead as _, Write as _};
use tokio::sync::mpsc;

const TOKEN: &str = "4200000001:AAfakefakefakefakefakefakefakefake0";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let server = BotServer::start(TOKEN).await;
    let reply = ReplyScript::text(["You said ", "**something**. ", "I am a script."]);
    let model = Server::start(Script::repeat(openai::streamed(&reply.usage(9, 9)))).await;
    print(&format!("base_url = \"{}\"", server.url()));
    print(&format!(
        "TELEGRAM_BOT_TOKEN={TOKEN} RONDO_BASE_URL={} RONDO_MODEL=local/any",
        model.url("/v1")
    ));
    let mut lines = lines();
    let mut shown: Vec<SeenMessage> = Vec::new();
    loop {
        let last = shown.clone();
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => act(&server, &line),
                None => return,
            },
            () = server.until(move |it| it.all_seen() != last) => {
                let now = server.all_seen();
                for message in now.iter().filter(|it| !shown.contains(it)) {
                    let labels = message.buttons.iter().map(|it| format!(" [{}]", it.0));
                    let labels: String = labels.collect();
                    print(&format!("{} #{}: {}{labels}", message.chat_id, message.message_id, message.text));
                }
                shown = now;
            }
        }
    }
}

fn print(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn act(server: &BotServer, line: &str) {
    let Some((person, said)) = line.split_once(' ') else {
        return;
    };
    let Ok(person) = person.parse() else {
        return;
    };
    match said.strip_prefix('!') {
        Some(label) => {
            let message = server.seen(person).pop();
            if let Some(message) = message.filter(|it| it.buttons.iter().any(|it| it.0 == label)) {
                server.press(&message, person, label);
            }
        }
        None => {
            server.say(Place::Private(person), person, said);
        }
    }
}

fn lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
