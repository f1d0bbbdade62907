//! Keys come and go while the server runs.

use super::{Keys, holding};
use crate::harness::{Peer, World, eventually, script};
use nuncio_server::{
    KeyFile,
    core::{ListTasks, Operation},
};
use serde_json::json;
use std::{fs, time::Duration};

/// Longer than the server goes without a look at the file.
const SEEN: Duration = Duration::from_millis(1200);

async fn status(peer: &Peer) -> u16 {
    let answer = peer.call(Operation::ListTasks, &json!({})).await;
    answer.head.status
}

async fn becomes(peer: &Peer, expected: u16) {
    eventually("the keys are read again", async || {
        (status(peer).await == expected).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_counts_and_stops_counting_without_a_restart() {
    let world = World::ALL[0];
    let keys = Keys::new();
    // There is no file yet, so nobody gets in.
    let house = keys.guard(world, script(|turn| async move { turn.complete() }));
    assert_eq!(status(&house.peer(world.dialect)).await, 401);
    let [alice, bob] =
        ["alice", "bob"].map(|name| holding(&house.peer(world.dialect), &keys.add(name)));
    becomes(&alice, 200).await;
    becomes(&bob, 200).await;
    let task = alice.say("hi").await;
    assert_eq!(KeyFile::revoke(&keys.path(), "alice").unwrap(), 1);
    becomes(&alice, 401).await;
    assert_eq!(status(&bob).await, 200);
    // Whoever gets the name back gets its tasks back.
    let alice = holding(&house.peer(world.dialect), &keys.add("alice"));
    becomes(&alice, 200).await;
    assert_eq!(alice.get(&task.id).await.unwrap(), task);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_replaced_without_a_gap() {
    let world = World::ALL[1];
    let keys = Keys::new();
    let old = keys.add("alice");
    let house = keys.guard(world, script(|turn| async move { turn.complete() }));
    let old = holding(&house.peer(world.dialect), &old);
    let task = old.say("hi").await;
    let new = holding(&house.peer(world.dialect), &keys.add("alice"));
    becomes(&new, 200).await;
    // Both count, for the same tasks.
    for peer in [&old, &new] {
        assert_eq!(peer.get(&task.id).await.unwrap(), task);
    }
    // All keys of a name go together.
    assert_eq!(KeyFile::revoke(&keys.path(), "alice").unwrap(), 2);
    becomes(&old, 401).await;
    assert_eq!(status(&new).await, 401);
    assert_eq!(KeyFile::revoke(&keys.path(), "alice").unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_key_file_leaves_the_known_keys_in_force() {
    let world = World::ALL[0];
    let keys = Keys::new();
    let alice = keys.add("alice");
    let house = keys.guard(world, script(|turn| async move { turn.complete() }));
    let alice = holding(&house.peer(world.dialect), &alice);
    assert_eq!(status(&alice).await, 200);
    let whole = fs::read(keys.path()).unwrap();
    fs::write(keys.path(), &whole[..whole.len() / 2]).unwrap();
    tokio::time::sleep(SEEN).await;
    for _ in 0..3 {
        assert_eq!(status(&alice).await, 200);
    }
    assert_eq!(status(&house.peer(world.dialect)).await, 401);
    // And it is looked at again.
    fs::write(keys.path(), &whole).unwrap();
    let bob = holding(&house.peer(world.dialect), &keys.add("bob"));
    becomes(&bob, 200).await;
    assert_eq!(status(&alice).await, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_file_that_is_gone_lets_nobody_in() {
    let world = World::ALL[0];
    let keys = Keys::new();
    let alice = keys.add("alice");
    let house = keys.guard(world, script(|turn| async move { turn.complete() }));
    let alice = holding(&house.peer(world.dialect), &alice);
    alice.list(ListTasks::default()).await.unwrap();
    fs::remove_file(keys.path()).unwrap();
    becomes(&alice, 401).await;
}

#[test]
fn a_key_file_holds_no_key_and_is_its_owners_alone() {
    let keys = Keys::new();
    let (one, two) = (keys.add("alice"), keys.add("alice"));
    assert_ne!(one, two);
    assert!(one.starts_with("nuncio_") && one.len() >= 43 + 7, "{one}");
    let text = fs::read_to_string(keys.path()).unwrap();
    assert!(!text.contains(&one["nuncio_".len()..]), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(keys.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    for name in ["", "a\nb", "\u{7f}"] {
        assert!(KeyFile::add(&keys.path(), name).is_err(), "{name:?}");
    }
    let names: Vec<_> = KeyFile::list(&keys.path()).unwrap();
    assert_eq!(
        names.iter().map(|key| &key.name).collect::<Vec<_>>(),
        ["alice", "alice"]
    );
    assert!(!KeyFile::open(keys.path()).unwrap().is_empty());
    fs::write(keys.path(), "nonsense").unwrap();
    assert!(KeyFile::open(keys.path()).is_err());
}
