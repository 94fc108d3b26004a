//! Every route of the published description, asked by strangers, by others, and by users who were revoked.

use crate::http::{Request, Response};
use crate::world::World;
use rondo_hub::users::Role;
use rondo_testkit::{ReplyScript, openai};
use serde_json::{Value, json};

/// Routes that anyone may ask; whatever is added to them must be added here.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];

/// A route of the description.
struct Listed {
    method: String,
    path: String,
    has_body: bool,
    is_open: bool,
    /// The statuses that it may answer with.
    statuses: Vec<u16>,
}

impl Listed {
    /// Returns a request to it, with values in its path, and a body if it takes one.
    fn request(&self, world: &World) -> Request {
        let path = self.path.replace("{chat}", "home");
        let path = path.replace("{message}", "1").replace("{file}", "0");
        let request = world.request(&self.method, &path);
        match self.has_body {
            false => request,
            true if path.ends_with("/answers") => {
                request.json(&json!({"token": "t", "answer": "approve"}))
            }
            true => request.json(&json!({ "text": "of someone else" })),
        }
    }
}

async fn listed(world: &World) -> Vec<Listed> {
    let document = world.request("GET", "/openapi.json").send().await.json();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let statuses = operation["responses"].as_object().unwrap().keys();
            routes.push(Listed {
                method: method.to_uppercase(),
                path: path.clone(),
                has_body: operation.get("requestBody").is_some(),
                is_open: operation.get("security").is_none(),
                statuses: statuses.map(|it| it.parse().unwrap()).collect(),
            });
        }
    }
    assert!(routes.len() >= 14, "{}", routes.len());
    routes
}

fn assert_error(response: &Response, route: &Listed, statuses: &[u16]) {
    let what = format!("{} {}: {}", route.method, route.path, response.text());
    assert!(statuses.contains(&response.status), "{what}");
    assert!(route.statuses.contains(&response.status), "{what}");
    let error = response.json();
    assert!(error["error"]["code"].is_string(), "{what}");
    assert!(error["error"]["message"].is_string(), "{what}");
}

#[tokio::test]
async fn every_route_refuses_strangers_and_says_so_in_its_description() {
    let world = World::new([]).await;
    let valid = world.user("ada", Role::Owner).await;
    let almost = format!("{}x", &valid[..valid.len() - 1]);
    for route in listed(&world).await {
        assert_eq!(
            route.is_open,
            OPEN.contains(&route.path.as_str()),
            "{}",
            route.path
        );
        let without = route.request(&world).send().await;
        if route.is_open {
            assert_eq!(without.status, 200, "{}", route.path);
            continue;
        }
        assert_error(&without, &route, &[401]);
        assert!(without.header("www-authenticate").is_some());
        assert_eq!(without.header("connection"), Some("close"));
        let mut wrong = vec![
            ("Authorization", format!("Bearer {almost}")),
            ("Authorization", "Bearer ".to_owned()),
            ("Authorization", format!("Basic {valid}")),
            ("Authorization", valid.clone()),
            ("X-Api-Key", valid.clone()),
            ("Cookie", format!("key={valid}")),
        ];
        // The bound on tries is another test's.
        let (name, value) = wrong.swap_remove(route.path.len() % wrong.len());
        let refused = route.request(&world).header(name, &value).send().await;
        assert_error(&refused, &route, &[401]);
    }
    assert_eq!(world.model.requests().len(), 0);
    world.stop().await;
}

#[tokio::test]
async fn no_route_shows_or_changes_anything_of_another_user() {
    let reply = ReplyScript::text(["The secret of Ada."]).usage(1, 1);
    let world = World::new([openai::streamed(&reply)]).await;
    let ada = world.user("ada", Role::Owner).await;
    let eve = world.user("eve", Role::Owner).await;
    world.say("home", &ada, "Keep my secret.").await;
    let mut events = world.events("home", &ada, "").await;
    let (place, _) = events.message().await;
    let before = world.get("/v1/chats/home/messages", &ada).await.body;
    for route in listed(&world).await {
        let is_of_chat = route.path.contains("{chat}");
        // Eve's own chat of that name begins with her first message, and is another one.
        let begins = route.method == "POST" && route.path.ends_with("/messages");
        if route.is_open || begins {
            continue;
        }
        let request = route.request(&world).key(&eve);
        let request = request.header("Last-Event-ID", &place);
        let response = request.send().await;
        match is_of_chat {
            true => assert_error(&response, &route, &[404]),
            false => assert_eq!(response.status, 200, "{}", route.path),
        }
        let said = response.text().to_lowercase();
        assert!(!said.contains("secret") && !said.contains("home"), "{said}");
    }
    let after = world.get("/v1/chats/home/messages", &ada).await.body;
    assert!(before == after);
    assert_eq!(world.get("/v1/usage", &eve).await.json()["requests"], 0);
    assert_eq!(world.model.requests().len(), 1);
    world.stop().await;
}

#[tokio::test]
async fn a_revoked_user_reaches_no_route_and_what_they_listen_to_ends() {
    let reply = ReplyScript::text(["Hello."]).usage(1, 1);
    let world = World::new([openai::streamed(&reply)]).await;
    let ada = world.user("ada", Role::Owner).await;
    let bob = world.user("bob", Role::Owner).await;
    world.say("home", &ada, "Hi.").await;
    let mut events = world.events("home", &ada, "").await;
    events.message().await;
    world.accounts.revoke("ada").await.unwrap();
    assert_eq!(events.next().await, None);
    for route in listed(&world).await.iter().filter(|it| !it.is_open) {
        let response = route.request(&world).key(&ada).send().await;
        assert_error(&response, route, &[401]);
    }
    assert_eq!(world.get("/v1/me", &bob).await.json()["user"], "bob");
    world.stop().await;
}

#[tokio::test]
async fn a_role_is_what_the_rows_say_and_not_what_a_client_says() {
    let world = World::new([]).await;
    for (name, role) in [("guest", Role::Guest), ("member", Role::Member)] {
        let key = world.user(name, role).await;
        let claims = world.request("GET", "/metrics").key(&key);
        let claims = claims
            .header("X-Role", "owner")
            .header("X-Forwarded-For", "127.0.0.1");
        assert_eq!(claims.send().await.status, 403, "{name}");
        let me = world.get("/v1/me?role=owner", &key).await.json();
        assert_eq!(me, json!({ "user": name, "role": name }));
    }
    let key = world.user("ada", Role::Owner).await;
    let metrics = world.get("/metrics", &key).await;
    assert_eq!(metrics.status, 200);
    let text = metrics.text();
    for name in [
        "rondo_outbox_open 0",
        "rondo_api_streams 0",
        "rondo_hub_received_total 0",
    ] {
        assert!(text.lines().any(|it| it == name), "{name}: {text}");
    }
    world.stop().await;
}

#[tokio::test]
async fn what_is_no_route_takes_a_key_too_and_methods_are_refused() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Guest).await;
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/v2/chats", 404),
        ("GET", "/v1/chats/home/", 404),
        ("DELETE", "/v1/chats/home", 405),
        ("PUT", "/v1/me", 405),
        ("TRACE", "/healthz", 405),
        ("OPTIONS", "/v1/chats", 405),
    ] {
        let stranger = world.request(method, path).send().await;
        assert_eq!(stranger.status, 401, "{method} {path}");
        let user = world.request(method, path).key(&key).send().await;
        assert_eq!(user.status, status, "{method} {path}");
        assert_eq!(
            user.header("allow").is_some(),
            status == 405,
            "{method} {path}"
        );
        assert_eq!(user.header("access-control-allow-origin"), None);
    }
    world.stop().await;
}

#[tokio::test]
async fn every_response_tells_browsers_not_to_run_frame_guess_or_keep_it() {
    let world = World::new([]).await;
    let key = world.user("ada", Role::Guest).await;
    for path in ["/healthz", "/openapi.json", "/v1/me", "/nothing"] {
        let response = world.get(path, &key).await;
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(response.header(name), Some(value), "{path}");
        }
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
    }
    world.stop().await;
}

#[tokio::test]
async fn the_description_names_what_it_refers_to() {
    let world = World::new([]).await;
    let document = world.request("GET", "/openapi.json").send().await.json();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    world.stop().await;
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(target) if key == "$ref" => references.push(target.clone()),
                    value => collect(value, references),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|it| collect(it, references)),
        _ => {}
    }
}
