//! What is not set up is off, and says so.

use super::{Keys, holding};
use crate::harness::{Gate, House, Peer, World, everywhere, script};
use nuncio_server::{
    Server,
    core::{Operation, ProtocolVersion},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const PUSH: [Operation; 4] = [
    Operation::CreatePushConfig,
    Operation::GetPushConfig,
    Operation::ListPushConfigs,
    Operation::DeletePushConfig,
];

async fn code_of(peer: &Peer, operation: Operation, params: &Value) -> Value {
    let answer = peer.call(operation, params).await;
    assert_eq!(answer.head.status, 200, "{}", answer.text());
    answer.json()["error"]["code"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn push_methods_are_off_whatever_they_are_asked() {
    everywhere(async |world: World| {
        let keys = Keys::new();
        let (alice, bob) = (keys.add("alice"), keys.add("bob"));
        let house = keys.guard(world, script(|turn| async move { turn.ask("what?") }));
        let alice = holding(&house.peer(world.dialect), &alice);
        let bob = holding(&house.peer(world.dialect), &bob);
        let (own, foreign) = (alice.say("hi").await.id, bob.say("hi").await.id);
        for id in [own.as_str(), foreign.as_str(), "missing", ""] {
            let params = [
                json!({}),
                json!({"id": id, "taskId": id}),
                json!({"taskId": id, "pushNotificationConfig": {"url": "https://example.com"}}),
                json!({"taskId": id, "id": "c", "url": "http://127.0.0.1/"}),
                json!({"id": id, "pushNotificationConfigId": "c"}),
                json!({"id": 7}),
            ];
            for params in params {
                for operation in PUSH {
                    assert_eq!(
                        code_of(&alice, operation, &params).await,
                        -32003,
                        "{params}"
                    );
                }
            }
        }
        let card = alice
            .fetch("/.well-known/agent-card.json", &[])
            .await
            .json();
        assert_eq!(card["capabilities"]["pushNotifications"], false);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_extended_card_each_version_has_its_own_error() {
    everywhere(async |world: World| {
        let keys = Keys::new();
        let key = keys.add("alice");
        let house = keys.guard(world, script(|turn| async move { turn.complete() }));
        let peer = house.peer(world.dialect);
        let expected = match world.dialect.version {
            ProtocolVersion::V0_3 => -32007,
            ProtocolVersion::V1_0 => -32004,
        };
        let known = holding(&peer, &key);
        for params in [json!({}), Value::Null, json!({"tenant": "t"})] {
            let code = code_of(&known, Operation::GetExtendedAgentCard, &params).await;
            assert_eq!(code, expected);
        }
        let answer = peer.call(Operation::GetExtendedAgentCard, &json!({})).await;
        assert_eq!(answer.head.status, 401);
        assert_eq!(answer.json()["error"]["code"], -32600);
        let card = peer.fetch("/.well-known/agent-card.json", &[]).await.json();
        assert_eq!(card["capabilities"]["extendedAgentCard"], false);
        assert_eq!(card["supportsAuthenticatedExtendedCard"], false);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_anonymous_is_one_principal() {
    let house = House::of(
        World::ALL[0],
        script(|turn| async move {
            let who = turn.principal();
            let text = format!(
                "{} {:?} {}",
                who.issuer(),
                who.subject(),
                who.is_anonymous()
            );
            turn.complete_with(text)
        }),
    );
    // Credentials that nobody asked for make nobody out of it.
    let peer = house.peer(World::ALL[0].dialect);
    for peer in [
        holding(&peer, "nuncio_x"),
        peer.with("X-API-Key", "alice"),
        peer,
    ] {
        let task = peer.say("who am I?").await;
        assert_eq!(task.status.message.unwrap().text(), "anonymous \"\" true");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_let_in_unasked_from_beyond_this_machine() {
    let agent = || script(|turn| async move { turn.complete() });
    for address in ["0.0.0.0:0", "[::]:0"] {
        let Ok(listener) = TcpListener::bind(address).await else {
            // A machine without IPv6 can't be reached by it either.
            assert!(address.starts_with('['), "{address} can't be listened on");
            continue;
        };
        let refused = Server::builder(agent())
            .serve_on(
                listener,
                || panic!("it came up on {address}"),
                std::future::pending(),
            )
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
        assert!(refused.to_string().contains("authentication"), "{refused}");
        let refused = Server::builder(agent()).serve(address).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beyond_this_machine_it_takes_keys_or_an_explicit_word() {
    let keys = Keys::new();
    let agent = script(|turn| async move { turn.complete() });
    let builders = [
        (
            "0.0.0.0:0",
            Server::builder(agent.clone()).auth(keys.auth()),
        ),
        (
            "0.0.0.0:0",
            Server::builder(agent.clone()).dangerously_serve_everybody(),
        ),
        ("127.0.0.1:0", Server::builder(agent.clone())),
        // All of 127/8 is this machine.
        ("127.0.0.2:0", Server::builder(agent)),
    ];
    for (address, builder) in builders {
        let Ok(listener) = TcpListener::bind(address).await else {
            assert_eq!(address, "127.0.0.2:0", "{address} can't be listened on");
            continue;
        };
        let up = Gate::new();
        let is_up = || {
            up.open();
            Ok(())
        };
        let stop = up.clone();
        builder
            .serve_on(listener, is_up, async move { stop.reached().await })
            .await
            .unwrap_or_else(|error| panic!("{address}: {error}"));
    }
}
