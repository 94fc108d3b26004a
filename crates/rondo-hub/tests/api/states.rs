//! View of an operator of channels that receive nothing, and of models.

use crate::world::World;
use async_trait::async_trait;
use rondo_hub::api::{Api, ApiOptions};
use rondo_hub::channel::{
    Abilities, Channel, ChannelError, Delivery, Outgoing, Receipt, SendError,
};
use rondo_hub::inbox::Inbox;
use rondo_hub::users::Role;
use rondo_hub::{Hub, HubConfig};
use rondo_runtime::env::Env;
use rondo_runtime::{Layer, NoNotices, Runtime, SetupError};
use rondo_testkit::{ReplyScript, openai};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// A channel whose token is refused.
pub(crate) struct Refused;

#[async_trait]
impl Channel for Refused {
    fn name(&self) -> &str {
        "refused"
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            delivery: Delivery::Key,
            drafts: false,
            typing: false,
            buttons: false,
        }
    }

    async fn receive(&self, _: Inbox, _: CancellationToken) -> Result<(), ChannelError> {
        Err(ChannelError::Setup {
            message: "the token secret-1 is refused".to_owned(),
        })
    }

    async fn send(&self, _: &Outgoing) -> Result<Receipt, SendError> {
        Ok(Receipt(String::new()))
    }
}

/// Runs a hub that listens at an address.
async fn run(listen: SocketAddr, more: Vec<Arc<dyn Channel>>) -> Result<(), SetupError> {
    let home = tempfile::tempdir().unwrap();
    let env = Env::of(&[("RONDO_HOME", home.path().to_str().unwrap())]);
    let runtime = Runtime::new(env, Layer::default(), Arc::new(NoNotices));
    let api = Api::new(ApiOptions {
        listen,
        ..ApiOptions::default()
    });
    let mut channels = more;
    channels.push(Arc::new(api));
    let hub = Hub::open(runtime, &HubConfig::default(), channels).unwrap();
    let ended = timeout(Duration::from_secs(60), hub.run(CancellationToken::new()));
    ended.await.unwrap()
}

#[tokio::test]
async fn a_hub_in_which_no_channel_can_receive_ends_and_says_why() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    let error = run(taken, vec![Arc::new(Refused)])
        .await
        .unwrap_err()
        .line();
    for said in [
        format!("`api`: the API cannot listen at {taken}"),
        "is another `rondo serve` running?".to_owned(),
        "`refused`: the token secret-1 is refused".to_owned(),
    ] {
        assert!(error.contains(&said), "{error}");
    }
}

#[tokio::test]
async fn a_channel_that_receives_nothing_makes_the_hub_unready_and_shows_in_the_figures() {
    let world = World::beside([], vec![Arc::new(Refused)]).await;
    let key = world.user("ada", Role::Owner).await;
    let unready = async {
        loop {
            let response = world.request("GET", "/readyz").send().await;
            if response.status == 503 {
                return response.text();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let said = timeout(Duration::from_secs(60), unready).await.unwrap();
    assert!(
        said.contains("`refused`") && !said.contains("secret-1"),
        "{said}"
    );
    assert_eq!(world.request("GET", "/healthz").send().await.status, 200);
    let figures = world.get("/metrics", &key).await.text();
    for line in [
        "rondo_channel_up{channel=\"api\"} 1\n",
        "rondo_channel_up{channel=\"refused\"} 0\n",
    ] {
        assert!(figures.contains(line), "{figures}");
    }
    world.stop().await;
}

#[tokio::test]
async fn the_figures_have_the_time_the_tokens_and_the_errors_of_models() {
    let reply = openai::streamed(&ReplyScript::text(["Yes."]).usage(7, 3));
    let refusal = openai::error(401, "auth", "bad key");
    let world = World::new([reply, refusal]).await;
    let key = world.user("ada", Role::Owner).await;
    world.say("home", &key, "one").await;
    let mut events = world.events("home", &key, "").await;
    events.message().await;
    world.say("home", &key, "two").await;
    events.message().await;
    let figures = world.get("/metrics", &key).await.text();
    for line in [
        "# TYPE rondo_model_request_seconds histogram\n",
        "rondo_model_request_seconds_bucket{le=\"300\"} 1\n",
        "rondo_model_request_seconds_bucket{le=\"+Inf\"} 1\n",
        "rondo_model_request_seconds_sum 0.",
        "rondo_model_request_seconds_count 1\n",
        "rondo_model_tokens_total{kind=\"input\"} 7\n",
        "rondo_model_tokens_total{kind=\"output\"} 3\n",
        "rondo_model_errors_total{class=\"auth\"} 1\n",
    ] {
        assert!(figures.contains(line), "{line} in {figures}");
    }
    world.stop().await;
}
