//! Resubscribing: the snapshot first, then what was missed, then what comes.

use crate::harness::{
    Frame, Gate, House, Peer, Setting, State, World, asking, everywhere, script, send,
};
use nuncio_server::{
    core::{Part, Task, TaskId, TaskState},
    store::Retention,
};
use std::{sync::Arc, time::Duration};

/// Entries: 1 the task, 2 working, 3 to 7 chunks; then, once the gate is open, 8 the question;
/// 9 the user's answer; 10 working, 11 to 15 chunks, 16 the end.
fn two_turns(gate: &Gate) -> crate::harness::Script {
    let gate = gate.clone();
    script(move |turn| {
        let gate = gate.clone();
        async move {
            turn.working().await?;
            let mut chunks = turn.chunks("numbers");
            for n in 1..=4 {
                chunks.send(Part::text(n.to_string())).await?;
            }
            chunks.finish(Part::text("5")).await?;
            gate.pass().await;
            if turn.message().text() == "begin" {
                turn.ask("on?")
            } else {
                turn.complete()
            }
        }
    })
}

const ANSWER: u64 = 9;
const LAST: u64 = 16;

fn parts_of(task: &Task) -> usize {
    task.artifacts
        .iter()
        .map(|artifact| artifact.parts.len())
        .sum()
}

/// A task that has been through both turns, and all frames of it.
async fn run_both_turns(peer: &Peer, gate: &Gate) -> (TaskId, Vec<Frame>) {
    gate.open_wide();
    let mut stream = peer.stream_send(send("begin")).await;
    let mut frames = stream.rest().await;
    let id = frames[0].task().id;
    let mut second = peer.stream_send(asking::to_task(send("end"), &id)).await;
    let snapshot = second.frame().await;
    assert_eq!(snapshot.id, Some(ANSWER));
    frames.extend(second.rest().await);
    let ids: Vec<_> = frames.iter().map(|frame| frame.id).collect();
    let all: Vec<_> = (1..=LAST).filter(|seq| *seq != ANSWER).map(Some).collect();
    assert_eq!(ids, all);
    (id, frames)
}

/// What a resumed stream says must be what the first one said: the same events with the same
/// ids, all of those after `last` and no other.
fn assert_resumed(last: u64, snapshot: &Frame, rest: &[Frame], all: &[Frame]) {
    assert_eq!(snapshot.id, Some(last.max(1)));
    let task = snapshot.task();
    let chunks = (3..=7).chain(11..=15).filter(|seq| *seq <= last).count();
    assert_eq!(parts_of(&task), chunks, "the task as of entry {last}");
    let state = match last {
        0 | 1 => TaskState::Submitted,
        8 | 9 => TaskState::InputRequired,
        LAST => TaskState::Completed,
        _ => TaskState::Working,
    };
    assert_eq!(task.status.state, state, "the task as of entry {last}");
    let told = |frames: &[Frame]| -> Vec<_> {
        frames
            .iter()
            .map(|frame| (frame.id, frame.json["result"].clone()))
            .collect()
    };
    let missed: Vec<_> = all
        .iter()
        .filter(|frame| frame.id > Some(last.max(1)))
        .cloned()
        .collect();
    assert_eq!(told(rest), told(&missed), "after entry {last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_any_event_of_an_ended_task_the_missed_ones_come_and_the_stream_closes() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let house = House::of(world, two_turns(&gate));
        let peer = house.peer(world.dialect);
        let (id, all) = run_both_turns(&peer, &gate).await;
        for last in 0..=LAST {
            let mut stream = peer.resubscribe(&id, last).await;
            let snapshot = stream.frame().await;
            assert_resumed(last, &snapshot, &stream.rest().await, &all);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_any_event_of_a_running_task_the_missed_ones_come_and_then_the_new() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let house = House::of(world, two_turns(&gate));
        let peer = house.peer(world.dialect);
        let mut first = peer.stream_send(send("begin")).await;
        let mut all = vec![first.frame().await];
        let id = all[0].task().id;
        while all.len() < 7 {
            all.push(first.frame().await);
        }
        let mut resumed = Vec::new();
        for last in 0..=7 {
            let mut stream = peer.resubscribe(&id, last).await;
            let snapshot = stream.frame().await;
            resumed.push((last, snapshot, stream));
        }
        gate.open_wide();
        all.extend(first.rest().await);
        let mut second = peer.stream_send(asking::to_task(send("end"), &id)).await;
        second.frame().await;
        all.extend(second.rest().await);
        assert_eq!(all.len() as u64, LAST - 1);
        for (last, snapshot, mut stream) in resumed {
            assert_resumed(last, &snapshot, &stream.rest().await, &all);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_changes_nothing_for_who_resumes() {
    for world in [World::ALL[4], World::ALL[5]] {
        let (gate, state) = (Gate::new(), State::new());
        let house = Setting::new(world.store).serve(two_turns(&gate), &state);
        let (id, all) = run_both_turns(&house.peer(world.dialect), &gate).await;
        house.die();
        let house = Setting::new(world.store).serve(two_turns(&gate), &state);
        let peer = house.peer(world.dialect);
        for last in 0..=LAST {
            let mut stream = peer.resubscribe(&id, last).await;
            let snapshot = stream.frame().await;
            assert_resumed(last, &snapshot, &stream.rest().await, &all);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_task_without_a_last_event_is_told_of_by_version() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let house = House::of(world, two_turns(&gate));
        let peer = house.peer(world.dialect);
        let (id, all) = run_both_turns(&peer, &gate).await;
        if world.dialect.is_v1() {
            assert_eq!(
                peer.refused_stream(&asking::to_follow(&id)).await.code,
                -32004
            );
            // An empty header is none.
            let empty = peer.with("Last-Event-ID", "");
            assert_eq!(
                empty.refused_stream(&asking::to_follow(&id)).await.code,
                -32004
            );
            return;
        }
        let frames = peer.subscribe(&id).await.rest().await;
        assert_eq!(frames.len(), 2);
        assert_eq!(frames[0].task(), peer.get(&id).await.unwrap());
        assert_eq!(frames[1].json["result"], all.last().unwrap().json["result"]);
        assert_eq!(frames[1].json["result"]["final"], true);
        assert!(frames[0].id < frames[1].id);
        assert_eq!(frames[1].id, Some(LAST));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_never_was_is_as_good_as_none() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let house = House::of(world, two_turns(&gate));
        let peer = house.peer(world.dialect);
        let (id, all) = run_both_turns(&peer, &gate).await;
        for last in [LAST + 1, 1_000_000, u64::MAX] {
            let frames = peer.resubscribe(&id, last).await.rest().await;
            assert_eq!(frames[0].task().status.state, TaskState::Completed);
            assert_eq!(frames[1].json["result"], all.last().unwrap().json["result"]);
            assert_eq!(frames.len(), 2);
        }
        // The same while the task is open.
        let open = peer.say("begin").await;
        let mut stream = peer.resubscribe(&open.id, 1_000).await;
        assert_eq!(stream.frame().await.task(), open);
        peer.send(asking::to_task(send("end"), &open.id))
            .await
            .unwrap();
        assert_eq!(stream.rest().await.last().unwrap().id, Some(LAST));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_event_that_is_no_number_is_refused() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let house = House::of(world, two_turns(&gate));
        let peer = house.peer(world.dialect);
        let (id, _) = run_both_turns(&peer, &gate).await;
        for garbage in [
            "abc",
            "-1",
            "1.5",
            "1 2",
            "0x10",
            "18446744073709551616",
            "ä",
            "1e3",
        ] {
            let peer = peer.with("Last-Event-ID", garbage);
            let refused = peer.refused_stream(&asking::to_follow(&id)).await;
            assert_eq!(
                (refused.code, refused.field()),
                (-32602, Some("Last-Event-ID"))
            );
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_log_was_pruned_the_task_as_it_stands_comes() {
    everywhere(async |world: World| {
        let (gate, state) = (Gate::new(), State::new());
        let store = world.store.open(state.folder());
        let setting = Setting::new(world.store).store(Arc::clone(&store));
        let house = setting.serve(two_turns(&gate), &state);
        let peer = house.peer(world.dialect);
        let (id, all) = run_both_turns(&peer, &gate).await;
        let task = peer.get(&id).await.unwrap();
        let ended = task.status.timestamp.unwrap();
        let policy = Retention {
            finished_before: None,
            entries_before: Some(ended.plus_millis(1)),
            max_finished: None,
        };
        crate::harness::eventually("the log is pruned", async || {
            let pruned = store.prune(&policy, 100).await.unwrap();
            (pruned.logs == 1).then_some(())
        })
        .await;
        assert_eq!(peer.get(&id).await.unwrap(), task);
        for last in [0, 1, 5, LAST] {
            let frames = peer.resubscribe(&id, last).await.rest().await;
            assert_eq!(frames[0].task(), task);
            assert_eq!(frames[0].id, Some(LAST));
            assert_eq!(frames.len(), 1);
        }
        if !world.dialect.is_v1() {
            // Who has no event yet is still told of the end.
            let frames = peer.subscribe(&id).await.rest().await;
            assert_eq!(frames[0].task(), task);
            assert_eq!(frames[1].json["result"], all.last().unwrap().json["result"]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_to_a_resting_task_waits_for_its_next_turn() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        gate.open_wide();
        let house = House::with(world, two_turns(&gate), |setting| {
            setting.limits(|limits| limits.keep_alive = Duration::from_millis(20))
        });
        let peer = house.peer(world.dialect);
        let task = peer.say("begin").await;
        let mut stream = peer.subscribe(&task.id).await;
        assert_eq!(stream.frame().await.task(), task);
        stream.comment().await;
        peer.send(asking::to_task(send("end"), &task.id))
            .await
            .unwrap();
        let ids: Vec<_> = stream
            .rest()
            .await
            .iter()
            .map(|frame| frame.id.unwrap())
            .collect();
        assert_eq!(ids, (ANSWER + 1..=LAST).collect::<Vec<_>>());
    })
    .await;
}
