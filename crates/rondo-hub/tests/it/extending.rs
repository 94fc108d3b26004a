//! The owner's `init.lua` in chats: handlers and tools, and what happens if one fails or hangs.

use crate::world::{World, calls, content, last_said, text, tools};
use rondo_core::ports::{Interception, RecordBody};
use rondo_journal::{Entry, Options, Store};
use serde_json::json;

const TICKETS: &str = "
rondo.tool {
  name = 'ticket', parameters = { number = 'integer' }, read_only = true,
  run = function(given) return 'ticket ' .. math.tointeger(given.number) end,
}
rondo.on('turn_start', function(step) return 'Mind the tickets.' end)
";

async fn world(init: &str, replies: impl Into<rondo_testkit::Script>) -> World {
    World {
        init: Some(init.to_owned()),
        ..World::new(replies).await
    }
}

fn ticket(number: u32) -> rondo_testkit::Response {
    calls(&[("c", "ticket", json!({ "number": number }))])
}

/// Returns the recorded decisions of handlers.
fn decided(world: &World) -> Vec<Interception> {
    let journal = world.home.path().join("data/sessions");
    let store = Store::open(&journal, Options::default()).unwrap();
    let mut decided = Vec::new();
    for info in store.sessions(10).unwrap() {
        let entries = store.read_all(&info.id).unwrap();
        for record in entries.into_iter().filter_map(Entry::into_record) {
            if let RecordBody::Intercepted(interception) = record.body {
                decided.push(interception);
            }
        }
    }
    decided
}

#[tokio::test]
async fn chats_have_the_owners_tools_and_handlers_whose_changes_are_recorded() {
    let init = format!(
        "{TICKETS} rondo.on('before_tool', function(call) return {{ arguments = {{ number = 7 }} }} end)"
    );
    let world = world(&init, [ticket(3), text(&["Seen."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "What is ticket 3?");
    world.messenger.until("ann", 1).await;
    hub.stop().await;
    let requests = world.requests();
    assert!(tools(&requests[0]).contains(&"ticket".to_owned()));
    assert!(last_said(&requests[0]).contains("Mind the tickets."));
    assert!(
        last_said(&requests[1]).contains("ticket 7"),
        "{}",
        requests[1]
    );
    let is_rewritten = |it: &Interception| matches!(it, Interception::Rewritten { arguments, .. } if arguments["number"] == 7);
    assert!(decided(&world).iter().any(is_rewritten));
}

#[tokio::test]
async fn guests_have_the_handlers_and_none_of_the_tools() {
    let world = world(TICKETS, [text(&["Hello."])]).await;
    let hub = world.start();
    world.messenger.say("gus", "Hello.");
    world.messenger.until("gus", 1).await;
    hub.stop().await;
    let request = &world.requests()[0];
    assert!(!tools(request).contains(&"ticket".to_owned()), "{request}");
    assert!(
        last_said(request).contains("Mind the tickets."),
        "{request}"
    );
}

#[tokio::test]
async fn a_handler_that_hangs_in_one_chat_keeps_no_other_waiting_and_spoils_no_turn() {
    // Each hangs for as long as a handler may run.
    let hangs = "rondo.on('turn_start', function(step)
        while step.text:find('hang') do pcall(function() while true do end end) end
        if step.text:find('fail') then error('it fails') end
    end)\n";
    let init = hangs.repeat(4);
    let world = world(&init, rondo_testkit::Script::repeat(text(&["Answered."]))).await;
    let hub = world.start();
    world.messenger.say("ann", "Please hang.");
    world.messenger.until_taken().await;
    world.messenger.say("bob", "Please fail.");
    world.messenger.until("bob", 1).await;
    world.messenger.until("ann", 1).await;
    hub.stop().await;
    assert_eq!(world.messenger.texts("ann"), ["Answered."]);
    assert_eq!(world.messenger.texts("bob"), ["Answered."]);
    let first = &world.requests()[0];
    assert!(last_said(first).contains("Please fail."), "{first}");
}

#[tokio::test]
async fn nothing_of_one_turn_is_left_for_another() {
    let init = "secret = nil
        rondo.on('turn_start', function(step)
            local before = secret
            secret = step.text
            return 'before: ' .. tostring(before)
        end)";
    let world = world(init, rondo_testkit::Script::repeat(text(&["Answered."]))).await;
    let hub = world.start();
    for person in ["ann", "bob"] {
        world.messenger.say(person, "A secret.");
        world.messenger.until(person, 1).await;
    }
    hub.stop().await;
    for request in world.requests() {
        assert!(last_said(&request).contains("before: nil"), "{request}");
    }
}

#[tokio::test]
async fn a_file_in_the_directories_of_chats_is_never_run() {
    let bad = "rondo.on('turn_start', function() return 'from the chat' end)";
    let world = world(TICKETS, [text(&["Hello."])]).await;
    let hub = world.home.path().join("data/hub");
    for below in ["", "workspace", "chats/wire_ann"] {
        let folder = hub.join(below).join(".rondo");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("init.lua"), bad).unwrap();
        std::fs::write(hub.join(below).join("init.lua"), bad).unwrap();
    }
    let hub = world.start();
    world.messenger.say("ann", "Hello.");
    world.messenger.until("ann", 1).await;
    hub.stop().await;
    let messages = world.requests()[0]["messages"].as_array().unwrap().clone();
    let said: String = messages.iter().map(content).collect();
    assert!(!said.contains("from the chat") && said.contains("Mind the tickets."));
}

#[tokio::test]
async fn the_owners_file_reads_and_writes_files_and_sleeps_within_its_time() {
    let init = "
rondo.tool {
  name = 'ticket', parameters = { number = 'integer' }, read_only = true,
  run = function(given)
    rondo.sleep(0.01)
    rondo.files.write('seen', 'ticket')
    rondo.files.append('seen', ' 3')
    local is_there = rondo.files.exists('seen') and not rondo.files.exists('unseen')
    local names = table.concat(rondo.files.list('.'), ' ')
    local ok, why = pcall(rondo.files.read, '/dev/zero')
    return rondo.files.read('seen') .. ' ' .. tostring(is_there) .. ' ' .. tostring(ok) .. ' ' .. why .. ' ' .. names
  end,
}
rondo.on('before_tool', function(call)
  if call.arguments.number == 4 then rondo.sleep(3600) end
end)
";
    let world = world(init, [ticket(3), ticket(4), text(&["Seen."])]).await;
    let hub = world.start();
    world.messenger.say("ann", "What is ticket 3?");
    world.messenger.until("ann", 1).await;
    hub.stop().await;
    let requests = world.requests();
    let result = last_said(&requests[1]);
    assert!(result.starts_with("ticket 3 true false "), "{result}");
    assert!(
        result.contains("rondo.files.read: `/dev/zero`: it is no regular file"),
        "{result}"
    );
    assert!(
        result.contains(" init.lua") && result.contains(" seen"),
        "{result}"
    );
    let seen = world.home.path().join("seen");
    assert_eq!(std::fs::read_to_string(seen).unwrap(), "ticket 3");
    let denied = last_said(&requests[2]);
    assert!(denied.contains("the user's handler failed"), "{denied}");
}
