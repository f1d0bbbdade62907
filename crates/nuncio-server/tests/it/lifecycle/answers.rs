//! How a send is answered.

use crate::harness::{
    Gate, House, World, asking, counted, eventually, everywhere, script, send, text_message,
};
use nuncio_server::core::{
    AgentCard, ContextId, GetTask, Message, Part, PartContent, PushConfig, Request, Response, Role,
    TaskId, TaskState,
};
use std::{sync::atomic::Ordering, time::Duration};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bare_message_leaves_no_task_behind() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move { turn.reply(vec![Part::text("just this")]) });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let context = ContextId::new("ours").unwrap();
        let message = asking::in_context(send("hi"), &context);
        match peer.ask(&Request::SendMessage(message)).await.unwrap() {
            Response::SentMessage(message) => {
                assert_eq!(message.text(), "just this");
                assert_eq!(message.role, Role::Agent);
                assert_eq!((message.context_id, message.task_id), (Some(context), None));
            }
            other => panic!("not a message: {other:?}"),
        }
        assert_eq!(peer.list(Default::default()).await.unwrap().total_size, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bare_message_completes_a_task_that_the_caller_knows() {
    everywhere(async |world: World| {
        let gate = Gate::new();
        let wait = gate.clone();
        let agent = script(move |turn| {
            let wait = wait.clone();
            async move {
                wait.pass().await;
                turn.reply(vec![Part::text("just this")])
            }
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.send_wait = Duration::from_millis(50))
        });
        let peer = house.peer(world.dialect);
        // Given the task at once, or when the wait was over.
        let tasks = [
            peer.send(asking::at_once(send("hi"))).await.unwrap(),
            peer.say("hi").await,
        ];
        gate.open_wide();
        for task in tasks {
            assert_eq!(task.status.state, TaskState::Submitted);
            let task = eventually("the task completes", async || {
                let now = peer.get(&task.id).await.unwrap();
                now.status.state.is_terminal().then_some(now)
            })
            .await;
            assert_eq!(task.status.state, TaskState::Completed);
            assert_eq!(task.status.message.unwrap().text(), "just this");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_is_over_ends_in_the_task_as_it_stands() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move {
            turn.progress("thinking").await?;
            turn.canceled().await;
            turn.cancel()
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.send_wait = Duration::from_millis(80))
        });
        let task = house.peer(world.dialect).say("hi").await;
        assert_eq!(task.status.state, TaskState::Working);
        assert_eq!(task.status.message.unwrap().text(), "thinking");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_answers_the_send_while_the_turn_goes_on() {
    everywhere(async |world: World| {
        let agent = script(|mut turn| async move {
            let question = turn.agent_message(vec![Part::text("who?")]);
            turn.status(TaskState::AuthRequired, Some(question)).await?;
            let name = turn.next_message().await?.text();
            turn.complete_with(format!("hello {name}"))
        });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.say("hi").await;
        assert_eq!(task.status.state, TaskState::AuthRequired);
        let task = peer
            .send(asking::to_task(send("bob"), &task.id))
            .await
            .unwrap();
        assert_eq!(task.status.message.unwrap().text(), "hello bob");
        let said: Vec<_> = task.history.iter().map(Message::text).collect();
        assert_eq!(said, ["hi", "who?", "bob"]);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_length_is_the_last_so_many() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.ask("more?") }));
        let peer = house.peer(world.dialect);
        let task = peer.say("0").await;
        for n in 1..4 {
            let mut next = asking::to_task(send(&n.to_string()), &task.id);
            next.configuration.history_length = Some(n);
            let task = peer.send(next).await.unwrap();
            assert_eq!(task.history.len() as u32, n);
            assert_eq!(task.history.last().unwrap().text(), n.to_string());
        }
        let whole = peer.get(&task.id).await.unwrap();
        assert_eq!(whole.history.len(), 7);
        for (length, count) in [(0, 0), (1, 1), (6, 6), (7, 7), (8, 7), (i32::MAX as u32, 7)] {
            let get = GetTask {
                id: task.id.clone(),
                history_length: Some(length),
            };
            match peer.ask(&Request::GetTask(get)).await.unwrap() {
                Response::Task(task) => {
                    assert_eq!(task.history[..], whole.history[7 - count..]);
                }
                other => panic!("not a task: {other:?}"),
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_that_is_not_the_tasks_is_refused() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move { turn.ask("more?") });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let task = peer.say("hi").await;
        let elsewhere = ContextId::new("elsewhere").unwrap();
        let wrong = asking::in_context(asking::to_task(send("hi"), &task.id), &elsewhere);
        let refused = peer.send(wrong).await.unwrap_err();
        assert_eq!(
            (refused.code, refused.field()),
            (-32602, Some("message.contextId"))
        );
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        assert_eq!(peer.get(&task.id).await.unwrap(), task);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn media_types_that_do_not_fit_are_refused_before_anything_runs() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move { turn.complete() });
        let house = House::with(world, agent, |setting| {
            setting.build(|builder| {
                builder.card(AgentCard {
                    name: "picky".into(),
                    default_input_modes: vec!["text/plain".into(), "image/*".into()],
                    default_output_modes: vec!["application/json".into()],
                    ..AgentCard::default()
                })
            })
        });
        let peer = house.peer(world.dialect);
        let with_part = |part: Part| {
            let mut send = send("look");
            send.message.parts.push(part);
            send
        };
        let accepting = |modes: &[&str]| {
            let mut send = send("look");
            send.configuration.accepted_output_modes =
                modes.iter().map(|mode| (*mode).to_owned()).collect();
            send
        };
        for fits in [
            with_part(Part::raw(b"png".to_vec(), "image/png")),
            with_part(Part::raw(b"png".to_vec(), "IMAGE/PNG; q=1")),
            accepting(&[]),
            accepting(&["text/html", "application/json"]),
            accepting(&["application/*"]),
            accepting(&["*/*"]),
        ] {
            peer.send(fits).await.unwrap();
        }
        let ran = runs.load(Ordering::SeqCst);
        for misfit in [
            with_part(Part::raw(b"pdf".to_vec(), "application/pdf")),
            with_part(Part::data(serde_json::json!({"a": 1}))),
            with_part(Part::url("https://example.com/what")),
            with_part(PartContent::Raw(b"?".to_vec()).into()),
            accepting(&["text/html"]),
            accepting(&["image/png", "audio/*"]),
        ] {
            let refused = peer.send(misfit.clone()).await.unwrap_err();
            assert_eq!(refused.code, -32005, "{misfit:?}");
            let request = Request::SendStreamingMessage(misfit);
            assert_eq!(peer.refused_stream(&request).await.code, -32005);
        }
        assert_eq!(runs.load(Ordering::SeqCst), ran);
        // Whose task it is makes no difference.
        let mut misfit = with_part(Part::data(1));
        misfit.message.task_id = Some(TaskId::new("nobody").unwrap());
        assert_eq!(peer.send(misfit).await.unwrap_err().code, -32005);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_config_is_refused_before_anything_runs_while_push_is_off() {
    everywhere(async |world: World| {
        let (agent, runs) = counted(|turn| async move { turn.complete() });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let mut send = send("hi");
        send.configuration.push_config = Some(PushConfig {
            id: None,
            url: "https://example.com/hook".into(),
            token: None,
            authentication: None,
        });
        assert_eq!(peer.send(send.clone()).await.unwrap_err().code, -32003);
        let request = Request::SendStreamingMessage(send);
        assert_eq!(peer.refused_stream(&request).await.code, -32003);
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_full_says_so_but_a_running_turn_still_gets_its_messages() {
    everywhere(async |world: World| {
        let begun = Gate::new();
        let begin = begun.clone();
        let (agent, runs) = counted(move |mut turn| {
            let begin = begin.clone();
            async move {
                turn.working().await?;
                begin.open();
                let text = turn.next_message().await?.text();
                turn.complete_with(text)
            }
        });
        let house = House::with(world, agent, |setting| {
            setting.limits(|limits| limits.turns = 1)
        });
        let peer = house.peer(world.dialect);
        let task = peer.send(asking::at_once(send("one"))).await.unwrap();
        begun.reached().await;
        let request = Request::SendMessage(send("two"));
        let answer = peer
            .post(&peer.body(request.operation(), &peer.params(&request)))
            .await;
        assert_eq!(answer.head.status, 503);
        assert!(answer.head.get("retry-after").is_some());
        assert_eq!(answer.json()["error"]["code"], -32603);
        let task = peer
            .send(asking::to_task(send("go"), &task.id))
            .await
            .unwrap();
        assert_eq!(task.status.message.unwrap().text(), "go");
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        // And then there is room again.
        let again = eventually("room for a turn", async || {
            let request = Request::SendMessage(asking::at_once(send("three")));
            let answer = peer
                .post(&peer.body(request.operation(), &peer.params(&request)))
                .await;
            (answer.head.status == 200).then_some(())
        });
        again.await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_keeps_what_its_sender_said_and_gets_its_place() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let mut message = text_message("all of it");
        message.metadata.insert("n", 9_007_199_254_740_993_u64);
        message.metadata.insert("f", 0.1);
        message.extensions = vec!["urn:x".into()];
        message.reference_task_ids = vec![TaskId::new("other").unwrap()];
        let mut send = send("");
        send.message = message.clone();
        let task = peer.send(send).await.unwrap();
        message.task_id = Some(task.id.clone());
        message.context_id = Some(task.context_id.clone());
        assert_eq!(task.history, [message]);
    })
    .await;
}
