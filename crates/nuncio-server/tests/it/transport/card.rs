//! The card over HTTP: its two places, its three forms, and how long it is good for.

use super::three_steps;
use crate::harness::{Answer, House, Peer, World};
use nuncio_server::core::{
    AgentCapabilities, AgentCard, AgentInterface, ProtocolBinding, ProtocolVersion,
    wire::card::CardForm,
};
use serde_json::Value;

const CARD: &str = "/.well-known/agent-card.json";
const OLDER: &str = "/.well-known/agent.json";
const URL: &str = "https://agents.example/agent/";

fn house() -> House {
    let world = World::ALL[0];
    House::with(world, three_steps(), |setting| {
        setting.build(|builder| builder.base_url(URL))
    })
}

async fn card_for(peer: &Peer, version: &str) -> Answer {
    let answer = peer.fetch(CARD, &[("A2A-Version", version)]).await;
    assert_eq!(answer.head.status, 200);
    answer
}

fn etag(answer: &Answer) -> &str {
    answer.head.get("etag").expect("a card has an ETag")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_says_how_long_it_is_good_for() {
    let house = house();
    let peer = house.peer(World::ALL[0].dialect);
    let answer = peer.fetch(CARD, &[]).await;
    let head = &answer.head;
    assert_eq!(head.status, 200);
    assert_eq!(head.get("content-type"), Some("application/json"));
    assert_eq!(head.get("cache-control"), Some("public, max-age=300"));
    assert_eq!(head.get("vary"), Some("A2A-Version"));
    assert!(etag(&answer).starts_with('"') && etag(&answer).ends_with('"'));
    let modified = head.get("last-modified").expect("a card has an age");
    let modified = httpdate::parse_http_date(modified).expect("a date of HTTP's");
    assert!(modified <= std::time::SystemTime::now());
    // The older place has the same card.
    let older = peer.fetch(OLDER, &[]).await;
    assert_eq!((&older.body, etag(&older)), (&answer.body, etag(&answer)));
    // Another server of the same agent does too, so a restart outdates no copy.
    let again = self::house();
    let again = again.peer(World::ALL[0].dialect).fetch(CARD, &[]).await;
    assert_eq!((&again.body, etag(&again)), (&answer.body, etag(&answer)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_version_gets_its_own_form_and_everybody_else_gets_both() {
    let house = house();
    let peer = house.peer(World::ALL[0].dialect);
    let both = peer.fetch(CARD, &[]).await;
    let (v03, v1) = (card_for(&peer, "0.3").await, card_for(&peer, "1.0").await);
    let has = |card: &Value, name: &str| card.get(name).is_some();
    for (answer, is_v03, is_v1) in [(&both, true, true), (&v03, true, false), (&v1, false, true)] {
        let card = answer.json();
        for name in [
            "url",
            "protocolVersion",
            "preferredTransport",
            "supportsAuthenticatedExtendedCard",
        ] {
            assert_eq!(has(&card, name), is_v03, "{name} {card}");
        }
        assert_eq!(has(&card, "supportedInterfaces"), is_v1, "{card}");
        assert_eq!(has(&card["capabilities"], "extendedAgentCard"), is_v1);
        assert_eq!(card["name"], "tested");
    }
    let tags = [etag(&both), etag(&v03), etag(&v1)];
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2]);
    for (version, form) in [
        ("0.3.0", &v03),
        ("1.0.7", &v1),
        ("", &both),
        // Who speaks neither sees from the card what is spoken.
        ("2.0", &both),
        ("nonsense", &both),
    ] {
        assert_eq!(
            card_for(&peer, version).await.body,
            form.body,
            "{version:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_form_for_everybody_is_configuration() {
    for (form, version) in [(CardForm::V0_3, "0.3"), (CardForm::V1_0, "1.0")] {
        let house = House::with(World::ALL[0], three_steps(), |setting| {
            setting.build(move |builder| builder.card_form(form))
        });
        let peer = house.peer(World::ALL[0].dialect);
        let plain = peer.fetch(CARD, &[]).await;
        assert_eq!(plain.body, card_for(&peer, version).await.body);
        let other = if version == "0.3" { "1.0" } else { "0.3" };
        assert_ne!(plain.body, card_for(&peer, other).await.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_the_card_is_not_sent_it_again() {
    let house = house();
    let peer = house.peer(World::ALL[0].dialect);
    let mut tags = Vec::new();
    for version in ["", "0.3", "1.0"] {
        tags.push((version, etag(&card_for(&peer, version).await).to_owned()));
    }
    for path in [CARD, OLDER] {
        for (version, tag) in &tags {
            let ask = async |known: &str| {
                let headers = [("A2A-Version", *version), ("If-None-Match", known)];
                peer.fetch(path, &headers).await
            };
            let (list, weak) = (format!("\"x\", {tag} , \"y\""), format!("W/{tag}"));
            for known in [tag, &weak, &list, "*"] {
                let answer = ask(known).await;
                assert_eq!(
                    (answer.head.status, answer.text()),
                    (304, String::new()),
                    "{known}"
                );
                assert_eq!(etag(&answer), tag);
                assert_eq!(answer.head.get("vary"), Some("A2A-Version"));
                assert!(answer.head.get("cache-control").is_some());
                assert_eq!(answer.head.get("content-type"), None);
            }
            let bare = tag.trim_matches('"');
            for unknown in ["", "\"x\"", bare, "\u{e4}"] {
                let answer = ask(unknown).await;
                assert_eq!(answer.head.status, 200, "{unknown}");
                assert!(answer.json()["name"].is_string());
            }
            // What one knows of another form says nothing about this one.
            for (_, other) in tags.iter().filter(|(_, other)| other != tag) {
                assert_eq!(ask(other).await.head.status, 200);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn head_is_get_without_the_body() {
    let house = house();
    let peer = house.peer(World::ALL[0].dialect);
    for path in [CARD, OLDER] {
        let get = peer.http("GET", path, &[]).await;
        let head = peer.http("HEAD", path, &[]).await;
        assert!(!get.body.is_empty() && head.body.is_empty());
        let headers = |answer: &Answer| {
            let mut headers = answer.head.headers.clone();
            headers.retain(|(name, _)| name != "date");
            headers
        };
        assert_eq!((head.head.status, headers(&head)), (200, headers(&get)));
        let known = [("If-None-Match", etag(&get))];
        assert_eq!(peer.http("HEAD", path, &known).await.head.status, 304);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_come_from_configuration_and_never_from_a_request() {
    let house = house();
    let peer = house.peer(World::ALL[0].dialect);
    let plain = peer.fetch(CARD, &[]).await;
    let card = plain.json();
    assert_eq!(card["url"], URL);
    let interfaces = card["supportedInterfaces"].as_array().expect("interfaces");
    let spoken = interfaces.iter().map(|interface| {
        assert_eq!(interface["url"], URL);
        assert_eq!(interface["protocolBinding"], "JSONRPC");
        interface["protocolVersion"].as_str().expect("a version")
    });
    assert_eq!(spoken.collect::<Vec<_>>(), ["1.0", "0.3"]);
    for (name, value) in [
        ("Host", "evil.example"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Proto", "gopher"),
        ("X-Forwarded-Prefix", "/evil"),
        ("Forwarded", "host=evil.example;proto=http"),
        ("X-Original-URL", "/evil"),
        ("Referer", "https://evil.example/"),
        ("Origin", "https://evil.example"),
    ] {
        assert_eq!(
            peer.fetch(CARD, &[(name, value)]).await.body,
            plain.body,
            "{name}"
        );
    }
    let whole = format!("http://evil.example{CARD}?url=http://evil.example");
    assert_eq!(peer.fetch(&whole, &[]).await.body, plain.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_does_not_promise_what_does_not_run() {
    let promises = AgentCard {
        name: "big".into(),
        interfaces: vec![AgentInterface::new(
            "https://elsewhere.example",
            ProtocolBinding::Grpc,
            ProtocolVersion::V1_0,
        )],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            extended_card: Some(true),
            state_transition_history: Some(true),
            ..AgentCapabilities::default()
        },
        ..AgentCard::default()
    };
    let house = House::with(World::ALL[0], three_steps(), |setting| {
        setting.build(|builder| builder.card(promises).streaming(false))
    });
    let peer = house.peer(World::ALL[0].dialect);
    let answer = peer.fetch(CARD, &[]).await;
    assert!(!answer.text().contains("elsewhere"), "{}", answer.text());
    let card = answer.json();
    for name in [
        "streaming",
        "pushNotifications",
        "extendedAgentCard",
        "stateTransitionHistory",
    ] {
        assert_eq!(card["capabilities"][name], false, "{name}");
    }
    assert_eq!(card["supportsAuthenticatedExtendedCard"], false);
    assert_eq!(card["name"], "big");
    // Where nothing is configured, it is where it listens.
    assert_eq!(card["url"], format!("http://{}/", house.address));
    for needed in ["securitySchemes", "security", "securityRequirements"] {
        assert!(card.get(needed).is_none(), "{needed} {card}");
    }
}
