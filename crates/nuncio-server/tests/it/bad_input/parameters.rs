//! Parameters of all the operations besides sends.

use super::{Case, try_all};
use crate::harness::{House, World, everywhere, script};
use nuncio_server::core::Operation;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_named_by_a_string() {
    let cases = || {
        let mut cases = Vec::new();
        for operation in [
            Operation::GetTask,
            Operation::CancelTask,
            Operation::SubscribeToTask,
        ] {
            let long = "x".repeat(257);
            for id in [
                json!(null),
                json!(7),
                json!(true),
                json!(["OPEN"]),
                json!({"id": "OPEN"}),
                json!(""),
                json!(long),
                json!("a\u{0}b"),
                json!("OPEN\n"),
            ] {
                cases.push(Case::params(operation, json!({"id": id}), -32602, "id"));
            }
            cases.push(Case::params(operation, json!({}), -32602, "id"));
            cases.push(Case::params(
                operation,
                json!({"taskId": "OPEN"}),
                -32602,
                "id",
            ));
            for id in [
                "nobody",
                " OPEN",
                "OPEN ",
                "ENDED/OPEN",
                "%",
                "OPEN' OR '1'='1",
                "../OPEN",
            ] {
                cases.push(Case::params(
                    operation,
                    json!({"id": id}),
                    -32001,
                    "not found",
                ));
            }
        }
        let ended = json!({"id": "ENDED"});
        cases.push(Case::params(
            Operation::CancelTask,
            ended,
            -32002,
            "canceled",
        ));
        for metadata in [json!("x"), json!([1])] {
            let params = json!({"id": "OPEN", "metadata": metadata});
            cases.push(Case::params(
                Operation::CancelTask,
                params,
                -32602,
                "metadata",
            ));
        }
        for length in [json!(-1), json!(0.5), json!("all"), json!([]), json!(1e12)] {
            let params = json!({"id": "OPEN", "historyLength": length});
            cases.push(Case::params(
                Operation::GetTask,
                params,
                -32602,
                "historyLength",
            ));
        }
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_asked_for_in_numbers_names_and_times() {
    let cases = || {
        let mut cases = Vec::new();
        let mut bad = |field: &'static str, values: Vec<Value>| {
            for value in values {
                let params = json!({field: value});
                cases.push(Case::params(Operation::ListTasks, params, -32602, field));
            }
        };
        bad(
            "contextId",
            vec![json!(7), json!([]), json!("a\nb"), json!("x".repeat(257))],
        );
        bad(
            "status",
            vec![
                json!("done"),
                json!("COMPLETED"),
                json!("TASK_STATE_DONE"),
                json!(99),
                json!(1.5),
                json!([]),
            ],
        );
        bad(
            "pageSize",
            vec![
                json!(0),
                json!(101),
                json!(-1),
                json!(1.5),
                json!("ten"),
                json!(true),
                json!([5]),
                json!(1e30),
            ],
        );
        bad(
            "pageToken",
            vec![
                json!(7),
                json!({}),
                json!("garbage!"),
                json!("AAAA"),
                json!("="),
                json!("x".repeat(5000)),
            ],
        );
        bad(
            "historyLength",
            vec![json!(-1), json!("1.5"), json!({}), json!(2_147_483_648_u32)],
        );
        bad(
            "statusTimestampAfter",
            vec![
                json!(7),
                json!("yesterday"),
                json!("2026-13-01T00:00:00Z"),
                json!("2026-02-30T00:00:00Z"),
                json!("2026-01-01"),
                json!("2026-01-01T00:00:00"),
            ],
        );
        bad("includeArtifacts", vec![json!("yes"), json!(1), json!([])]);
        cases
    };
    try_all(cases).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_fields_at_fault_are_named_but_not_a_million() {
    everywhere(async |world: World| {
        let house = House::of(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let named = async |operation, params: Value| {
            let reply = peer.call(operation, &params).await.json();
            let named = reply["error"]["data"][0]["fieldViolations"].clone();
            let named = named.as_array().expect("fields are named").clone();
            let fields = named
                .iter()
                .map(|v| v["field"].as_str().expect("a path").to_owned());
            fields.collect::<Vec<_>>()
        };
        let params = json!({"pageSize": 0, "historyLength": -1, "status": "done"});
        let fields = named(Operation::ListTasks, params).await;
        assert_eq!(fields, ["status", "pageSize", "historyLength"]);
        let message = json!({"messageId": "m", "role": "user", "parts": vec![json!({}); 200]});
        let fields = named(Operation::SendMessage, json!({"message": message})).await;
        let first: Vec<_> = (0..16).map(|n| format!("message.parts[{n}]")).collect();
        assert_eq!(fields, first);
    })
    .await;
}
