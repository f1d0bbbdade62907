//! Ways to establish who is calling, other than keys in a file.

use crate::harness::{House, Peer, World, asking, everywhere, script, send};
use axum::http::HeaderMap;
use nuncio_server::{
    Auth, Authenticator, InvalidCredentials, async_trait,
    core::{ListTasks, Operation, Principal, SecurityScheme},
};
use serde_json::json;
use std::sync::Arc;

/// Lets in whoever says their name, within the tenant they say; throws out who says `nobody`.
struct ByName(&'static str);

#[async_trait]
impl Authenticator for ByName {
    fn schemes(&self) -> Vec<(String, SecurityScheme)> {
        let name = self.0.to_owned();
        let scheme = SecurityScheme::ApiKey {
            description: None,
            location: "header".into(),
            name,
        };
        vec![(self.0.into(), scheme)]
    }

    fn challenge(&self) -> String {
        format!("Name header=\"{}\"", self.0)
    }

    async fn authenticate(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<Principal>, InvalidCredentials> {
        let Some(value) = headers.get(self.0) else {
            return Ok(None);
        };
        let value = value.to_str().map_err(|_| InvalidCredentials)?;
        match value.split_once('@') {
            _ if value == "nobody" => Err(InvalidCredentials),
            Some((name, tenant)) => Ok(Some(Principal::new(self.0, name).in_tenant(tenant))),
            None => Ok(Some(Principal::new(self.0, value))),
        }
    }
}

fn by_name(world: World) -> House {
    let auth = Auth::Required(vec![Arc::new(ByName("x-one")), Arc::new(ByName("x-two"))]);
    let agent = script(|turn| async move { turn.ask("what?") });
    House::with(world, agent, |setting| {
        setting.build(|builder| builder.auth(auth))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authenticators_are_asked_in_turn_until_one_has_an_opinion() {
    let world = World::ALL[1];
    let house = by_name(world);
    let with = |headers: &[(&str, &str)]| {
        headers
            .iter()
            .fold(house.peer(world.dialect), |peer, (name, value)| {
                peer.with(name, value)
            })
    };
    let total = async |peer: Peer| peer.list(ListTasks::default()).await.unwrap().total_size;
    with(&[("X-One", "alice")]).say("hi").await;
    assert_eq!(total(with(&[("X-One", "alice")])).await, 1);
    // The first that knows the caller says who it is.
    assert_eq!(
        total(with(&[("X-Two", "bob"), ("X-One", "alice")])).await,
        1
    );
    // One subject of two issuers is two principals.
    assert_eq!(total(with(&[("X-Two", "alice")])).await, 0);
    for headers in [
        &[][..],
        &[("X-One", "nobody")],
        // Bad credentials for the first are not made good by the second.
        &[("X-One", "nobody"), ("X-Two", "bob")],
    ] {
        let answer = with(headers).call(Operation::ListTasks, &json!({})).await;
        assert_eq!(answer.head.status, 401, "{headers:?}");
        let challenges = answer
            .head
            .headers
            .iter()
            .filter(|(name, _)| name == "www-authenticate");
        let challenges: Vec<_> = challenges.map(|(_, value)| value.as_str()).collect();
        assert_eq!(
            challenges,
            ["Name header=\"x-one\"", "Name header=\"x-two\""]
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_caller_in_two_tenants_has_two_scopes() {
    everywhere(async |world: World| {
        let house = by_name(world);
        let scopes = ["alice", "alice@a", "alice@b", "alice@a/b", "a"];
        let peers = scopes.map(|scope| house.peer(world.dialect).with("X-One", scope));
        let mut tasks = Vec::new();
        for peer in &peers {
            tasks.push(peer.say("hi").await);
        }
        for (mine, peer) in tasks.iter().zip(&peers) {
            let page = peer.list(ListTasks::default()).await.unwrap();
            assert_eq!((page.total_size, &page.tasks[0].id), (1, &mine.id));
            for task in tasks.iter().filter(|task| task.id != mine.id) {
                assert_eq!(peer.get(&task.id).await.unwrap_err().code, -32001);
                assert_eq!(peer.cancel(&task.id).await.unwrap_err().code, -32001);
                let more = asking::to_task(send("more"), &task.id);
                assert_eq!(peer.send(more).await.unwrap_err().code, -32001);
            }
        }
    })
    .await;
}
