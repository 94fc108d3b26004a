//! How long requests and commands of a gateway may take, and what of that a user sets.

use crate::world::{World, text};
use rondo_runtime::profiles;
use rondo_testkit::Script;
use rondo_types::Profile;
use std::time::Duration;

/// The profile that the turns of a hub have.
fn profile(world: &World) -> Profile {
    let hub = world.open();
    let settings = hub.service().runtime().settings("/".into()).unwrap();
    profiles::resolve(&settings, settings.profile_name())
        .unwrap()
        .profile
}

fn values(text: &str) -> toml::Table {
    toml::from_str(text).unwrap()
}

#[tokio::test]
async fn hub_10_hub_12_silence_ends_a_request_of_a_gateway_and_a_long_reply_does_not() {
    let world = World::new([text(&["Yes."])]).await;
    let profile = profile(&world);
    let limits = &profile.limits;
    let seconds = |time| Some(Duration::from_secs(time));
    assert_eq!(limits.first_byte_timeout, seconds(30));
    assert_eq!(limits.idle_timeout, seconds(30));
    assert_eq!(limits.step_timeout, seconds(600));
    let default = rondo_core::profile::builtin("default").unwrap();
    assert_eq!(limits.tool_timeout, default.limits.tool_timeout);
    let hub = world.start();
    world.messenger.say("ann", "Well?");
    world.messenger.until("ann", 1).await;
    hub.stop().await;
    assert_eq!(world.requests()[0]["stream"], true);
}

#[tokio::test]
async fn what_a_user_sets_for_the_profile_of_a_gateway_counts() {
    let mut world = World::new(Script::repeat(text(&["Yes."]))).await;
    let own = "
        streaming = false
        limits = { step_timeout_ms = 40_000 }
        compaction = { max_messages = 6, keep_messages = 2 }
    ";
    world.flags.profiles.insert("hub".to_owned(), values(own));
    let profile = profile(&world);
    assert!(!profile.streaming);
    assert_eq!(profile.limits.step_timeout, Some(Duration::from_secs(40)));
    assert_eq!(profile.limits.tool_timeout, Some(Duration::from_secs(120)));
    let hub = world.start();
    for turn in 0..5 {
        world.messenger.say("ann", &format!("Question {turn}."));
        world.messenger.until("ann", turn + 1).await;
    }
    hub.stop().await;
    let counts = world.requests().into_iter().map(|request| {
        let messages = request["messages"].as_array().unwrap();
        messages.iter().filter(|it| it["role"] != "system").count() - 1
    });
    assert_eq!(counts.collect::<Vec<_>>(), [0, 2, 4, 6, 2]);
}
