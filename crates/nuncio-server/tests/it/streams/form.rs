//! What a stream looks like on the wire.

use crate::harness::{Connection, Dialect, House, World, asking, everywhere, script, send};
use nuncio_server::core::{Operation, Part, Request, TaskId};
use serde_json::{Value, json};

fn three_steps() -> crate::harness::Script {
    script(|turn| async move {
        turn.progress("line one\nline two").await?;
        turn.text_artifact("text", "\r\n\u{2028}: data: id: \n\n")
            .await?;
        turn.complete()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_is_an_id_and_one_line_of_data() {
    everywhere(async |world: World| {
        let house = House::of(world, three_steps());
        let mut stream = house.peer(world.dialect).stream_send(send("go")).await;
        for (name, value) in [
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache"),
            ("x-accel-buffering", "no"),
        ] {
            assert_eq!(stream.head.get(name), Some(value));
        }
        let frames = stream.rest().await;
        assert_eq!(frames.len(), 4);
        for (number, frame) in (1..).zip(&frames) {
            assert_eq!(frame.id, Some(number));
            assert_eq!(frame.lines.len(), 2, "{:?}", frame.lines);
            assert_eq!(frame.lines[0], format!("id: {number}"));
            assert!(frame.lines[1].starts_with(r#"data: {"jsonrpc":"2.0","id":"#));
        }
        assert_eq!(frames[2].brief(), "artifact \r\n\u{2028}: data: id: \n\n");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_version_has_its_own_shapes() {
    everywhere(async |world: World| {
        let house = House::of(world, three_steps());
        let mut stream = house.peer(world.dialect).stream_send(send("go")).await;
        let results: Vec<Value> = stream
            .rest()
            .await
            .iter()
            .map(|frame| frame.json["result"].clone())
            .collect();
        if world.dialect.is_v1() {
            let names: Vec<_> = results
                .iter()
                .map(|result| {
                    result
                        .as_object()
                        .unwrap()
                        .keys()
                        .cloned()
                        .collect::<Vec<_>>()
                })
                .collect();
            assert_eq!(
                names,
                [
                    ["task"],
                    ["statusUpdate"],
                    ["artifactUpdate"],
                    ["statusUpdate"]
                ]
            );
            assert_eq!(
                results[0]["task"]["status"]["state"],
                "TASK_STATE_SUBMITTED"
            );
            assert_eq!(results[0]["task"]["history"][0]["role"], "ROLE_USER");
            assert_eq!(
                results[3]["statusUpdate"]["status"]["state"],
                "TASK_STATE_COMPLETED"
            );
            let text = results.iter().map(Value::to_string).collect::<String>();
            assert!(
                !text.contains(r#""kind""#) && !text.contains(r#""final""#),
                "{text}"
            );
        } else {
            let kinds: Vec<_> = results
                .iter()
                .map(|result| result["kind"].clone())
                .collect();
            assert_eq!(
                kinds,
                ["task", "status-update", "artifact-update", "status-update"]
            );
            assert_eq!(results[0]["status"]["state"], "submitted");
            assert_eq!(results[1]["final"], false);
            assert_eq!(results[3]["final"], true);
            assert_eq!(results[3]["status"]["state"], "completed");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_id_comes_back_with_its_type_in_every_frame() {
    everywhere(async |world: World| {
        let house = House::of(world, three_steps());
        let peer = house.peer(world.dialect);
        let ids = [
            json!(0),
            json!(-7),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(""),
            json!("7"),
            json!("ä\"\n"),
            json!(null),
        ];
        for id in ids {
            let params = peer.params(&Request::SendStreamingMessage(send("go")));
            let method = world.dialect.method(Operation::SendStreamingMessage);
            let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            let mut connection = Connection::open(house.address).await;
            connection
                .write(&peer.bytes(body.to_string().as_bytes()))
                .await;
            connection.read_head("POST").await.unwrap();
            let mut text = String::new();
            while let Some(piece) = connection.read_piece().await {
                text.push_str(std::str::from_utf8(&piece).unwrap());
            }
            let frames: Vec<Value> = text
                .lines()
                .filter_map(|line| line.strip_prefix("data: "))
                .map(|data| serde_json::from_str(data).unwrap())
                .collect();
            assert_eq!(frames.len(), 4);
            assert!(frames.iter().all(|frame| frame["id"] == id), "{id}: {text}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bare_message_is_a_stream_of_one_frame() {
    everywhere(async |world: World| {
        let agent = script(|turn| async move { turn.reply(vec![Part::text("just this")]) });
        let house = House::of(world, agent);
        let peer = house.peer(world.dialect);
        let frames = peer.stream_send(send("go")).await.rest().await;
        assert_eq!(frames.len(), 1);
        // There is no task, so there is nothing to resume.
        assert_eq!(frames[0].id, None);
        assert_eq!(frames[0].brief(), "message just this");
        assert_eq!(peer.list(Default::default()).await.unwrap().total_size, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_length_counts_for_the_task_at_the_head_of_a_stream() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.ask("more?") }));
        let peer = house.peer(world.dialect);
        let mut none = send("one");
        none.configuration.history_length = Some(0);
        let mut stream = peer.stream_send(none).await;
        let task = stream.frame().await.task();
        assert_eq!(task.history, []);
        stream.rest().await;
        let mut last = asking::to_task(send("two"), &task.id);
        last.configuration.history_length = Some(1);
        let task = peer.stream_send(last).await.frame().await.task();
        assert_eq!(task.history.len(), 1);
        assert_eq!(task.history[0].text(), "two");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_before_the_first_event_is_a_json_answer() {
    everywhere(async |world: World| {
        let house = House::of(world, three_steps());
        let nobody = TaskId::new("nobody").unwrap();
        let requests = [
            asking::to_follow(&nobody),
            Request::SendStreamingMessage(asking::to_task(send("hi"), &nobody)),
        ];
        for request in &requests {
            let accepts = [
                "",
                "*/*",
                "application/json, text/event-stream",
                "text/html",
            ];
            for accept in accepts {
                let peer = house.peer(world.dialect).with("Accept", accept);
                let Err(answer) = peer.try_stream(request).await else {
                    panic!("a stream for accept {accept:?}");
                };
                assert_eq!(answer.head.status, 200);
                assert_eq!(answer.head.get("content-type"), Some("application/json"));
                assert_eq!(answer.json()["error"]["code"], -32001);
            }
            // Clients of 0.3 that take nothing but a stream get the error in one.
            let peer = house
                .peer(world.dialect)
                .with("Accept", "text/event-stream");
            match peer.try_stream(request).await {
                Ok(mut stream) => {
                    assert_eq!(world.dialect.version, Dialect::V0_3.version);
                    let frames = stream.rest().await;
                    assert_eq!(frames.len(), 1);
                    assert_eq!(frames[0].error().code, -32001);
                    assert!(frames[0].json["id"].is_u64());
                }
                Err(answer) => {
                    assert!(world.dialect.is_v1());
                    assert_eq!(answer.json()["error"]["code"], -32001);
                }
            }
        }
    })
    .await;
}
