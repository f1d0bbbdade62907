//! The model of each golden file, built by hand.

use nuncio_core::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    Artifact, ArtifactId, ArtifactUpdate, CancelTask, CardSignature, DeletePushConfig, Event,
    GetPushConfig, GetTask, ListPushConfigs, ListTasks, Message, Metadata, OAuthFlow, OAuthFlows,
    Part, ProtocolBinding, PushAuthentication, PushConfig, Request, Response, Role, Secret,
    SecurityScheme, SendConfiguration, SendMessage, SetPushConfig, StatusUpdate, SubscribeToTask,
    Task, TaskPage, TaskState, TaskStatus,
};
use serde_json::{Value, json};

/// An id of whatever kind is wanted.
pub(crate) fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

fn metadata(value: Value) -> Metadata {
    let Value::Object(map) = value else {
        panic!("metadata is an object")
    };
    map.into()
}

fn strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

fn message(name: &str, role: Role, part: Part) -> Message {
    Message::new(id(name), role, vec![part])
}

/// The model of `request-<name>.json` in both versions.
pub(crate) fn requests() -> Vec<(&'static str, Request)> {
    let full = SendMessage {
        message: Message {
            id: id("m-1"),
            context_id: Some(id("c-1")),
            task_id: Some(id("t-1")),
            role: Role::User,
            parts: vec![
                Part::text("Summarise the report.\n\"Größe\" matters."),
                Part::raw([0xfb, 0xff, 0x00, b'h', b'i'], "application/octet-stream")
                    .named("report.bin"),
                Part {
                    media_type: Some("application/pdf".to_owned()),
                    ..Part::url("https://example.com/q3.pdf").named("q3.pdf")
                },
                Part::data(
                    json!({"quarter": 3, "revenue": 9_007_199_254_740_993_u64, "growth": 0.125}),
                ),
                Part {
                    metadata: metadata(json!({"unit": "EUR"})),
                    ..Part::data(json!([1, 2.5, "x", null]))
                },
            ],
            metadata: metadata(json!({"trace": "abc", "nested": {"k": [true, null]}})),
            extensions: strings(["https://example.com/ext/v1"]),
            reference_task_ids: vec![id("t-0")],
        },
        configuration: SendConfiguration {
            accepted_output_modes: strings(["text/plain", "application/json"]),
            push_config: Some(push_config(&["Bearer", "Basic"])),
            history_length: Some(5),
            return_immediately: true,
        },
        metadata: metadata(json!({"priority": 1})),
    };
    let least = SendMessage {
        message: message("m-1", Role::User, Part::text("Hello")),
        configuration: SendConfiguration::default(),
        metadata: Metadata::new(),
    };
    let streaming = SendMessage {
        message: message("m-2", Role::User, Part::data(Value::Null)),
        configuration: SendConfiguration {
            history_length: Some(0),
            ..Default::default()
        },
        metadata: Metadata::new(),
    };
    vec![
        ("send-message", Request::SendMessage(full)),
        ("send-message-least", Request::SendMessage(least)),
        (
            "send-streaming-message",
            Request::SendStreamingMessage(streaming),
        ),
        (
            "get-task",
            Request::GetTask(GetTask {
                id: id("t-1"),
                history_length: Some(10),
            }),
        ),
        (
            "list-tasks",
            Request::ListTasks(ListTasks {
                context_id: Some(id("c-1")),
                state: Some(TaskState::InputRequired),
                status_after: Some("2026-01-31T12:00:00Z".parse().unwrap()),
                page_size: Some(20),
                page_token: Some("next".to_owned()),
                history_length: Some(0),
                include_artifacts: true,
            }),
        ),
        (
            "cancel-task",
            Request::CancelTask(CancelTask {
                id: id("t-1"),
                metadata: metadata(json!({"why": "changed my mind"})),
            }),
        ),
        (
            "subscribe-to-task",
            Request::SubscribeToTask(SubscribeToTask { id: id("t-1") }),
        ),
        (
            "create-push-config",
            Request::CreatePushConfig(SetPushConfig {
                task_id: id("t-1"),
                config: push_config(&["Bearer"]),
            }),
        ),
        (
            "get-push-config",
            Request::GetPushConfig(GetPushConfig {
                task_id: id("t-1"),
                config_id: Some(id("p-1")),
            }),
        ),
        (
            "list-push-configs",
            Request::ListPushConfigs(ListPushConfigs {
                task_id: id("t-1"),
                page_size: Some(10),
                page_token: Some("next".to_owned()),
            }),
        ),
        (
            "delete-push-config",
            Request::DeletePushConfig(DeletePushConfig {
                task_id: id("t-1"),
                config_id: id("p-1"),
            }),
        ),
        ("get-extended-agent-card", Request::GetExtendedAgentCard),
    ]
}

fn push_config(schemes: &[&str]) -> PushConfig {
    PushConfig {
        id: Some(id("p-1")),
        url: "https://example.com/hook".to_owned(),
        token: Some(Secret::new("s3cret")),
        authentication: Some(PushAuthentication {
            schemes: schemes.iter().map(|&scheme| scheme.to_owned()).collect(),
            credentials: Some(Secret::new("c0de")),
        }),
    }
}

/// The same config as an answer shows it.
fn shown_push_config() -> SetPushConfig {
    let authentication = Some(PushAuthentication {
        schemes: strings(["Bearer"]),
        credentials: None,
    });
    let config = PushConfig {
        token: None,
        authentication,
        ..push_config(&[])
    };
    SetPushConfig {
        task_id: id("t-1"),
        config,
    }
}

fn task() -> Task {
    let mut done = message("m-9", Role::Agent, Part::text("Done."));
    done.context_id = Some(id("c-1"));
    done.task_id = Some(id("t-1"));
    Task {
        id: id("t-1"),
        context_id: id("c-1"),
        status: TaskStatus {
            state: TaskState::Completed,
            message: Some(done),
            timestamp: Some("2026-01-31T12:00:00.250Z".parse().unwrap()),
        },
        artifacts: vec![Artifact {
            description: Some("One page".to_owned()),
            metadata: metadata(json!({"lang": "en"})),
            extensions: strings(["https://example.com/ext/v1"]),
            ..Artifact::new(
                id("a-1"),
                vec![Part::text("Revenue grew."), Part::data(json!({"pages": 1}))],
            )
            .named("summary")
        }],
        history: vec![message("m-1", Role::User, Part::text("Summarise."))],
        metadata: metadata(json!({"cost": 0.1})),
    }
}

fn answer() -> Message {
    Message {
        context_id: Some(id("c-1")),
        reference_task_ids: vec![id("t-0"), id("t-1")],
        ..message("m-9", Role::Agent, Part::text("Direct answer."))
    }
}

/// The model of `event-<name>.json` in both versions.
pub(crate) fn events() -> Vec<(&'static str, Event)> {
    let at = Some("2026-01-31T12:00:00Z".parse().unwrap());
    let status = |state, message, metadata| {
        Event::Status(StatusUpdate {
            task_id: id("t-1"),
            context_id: id("c-1"),
            status: TaskStatus {
                state,
                message,
                timestamp: at,
            },
            metadata,
        })
    };
    let question = message("m-3", Role::Agent, Part::text("Which quarter?"));
    let artifact_id: ArtifactId = id("a-1");
    let chunk = |content, last, metadata| {
        Event::Artifact(ArtifactUpdate {
            task_id: id("t-1"),
            context_id: id("c-1"),
            artifact: Artifact::new(artifact_id.clone(), vec![content]),
            append: last,
            last_chunk: last,
            metadata,
        })
    };
    let empty = nuncio_core::PartContent::Raw(Vec::new()).into();
    vec![
        ("task", Event::Task(task())),
        ("message", Event::Message(answer())),
        (
            "status-update",
            status(TaskState::Working, None, metadata(json!({"progress": 0.5}))),
        ),
        (
            "status-update-final",
            status(TaskState::InputRequired, Some(question), Metadata::new()),
        ),
        ("artifact-update", chunk(empty, false, Metadata::new())),
        (
            "artifact-update-last",
            chunk(Part::text(" The end."), true, metadata(json!({"chunk": 2}))),
        ),
    ]
}

/// The model of `response-<name>.json` in both versions.
pub(crate) fn responses() -> Vec<(&'static str, Response)> {
    let waiting = Task {
        id: id("t-2"),
        context_id: id("c-1"),
        status: TaskStatus {
            state: TaskState::AuthRequired,
            message: None,
            timestamp: None,
        },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: Metadata::new(),
    };
    let other = SetPushConfig {
        task_id: id("t-1"),
        config: PushConfig {
            id: Some(id("p-2")),
            url: "https://example.com/other".to_owned(),
            token: None,
            authentication: None,
        },
    };
    vec![
        ("sent-task", Response::SentTask(task())),
        ("sent-message", Response::SentMessage(answer())),
        ("task", Response::Task(task())),
        (
            "task-page",
            Response::TaskPage(TaskPage {
                tasks: vec![waiting],
                next_page_token: String::new(),
                page_size: 50,
                total_size: 1,
            }),
        ),
        ("push-config", Response::PushConfig(shown_push_config())),
        (
            "push-configs",
            Response::PushConfigs {
                configs: vec![shown_push_config(), other],
                next_page_token: String::new(),
            },
        ),
        ("push-config-deleted", Response::PushConfigDeleted),
    ]
}

/// The model of `card.json`: what each version says of it is a part of this.
pub(crate) fn card() -> AgentCard {
    use ProtocolBinding::{Grpc, HttpJson, JsonRpc};
    let interface = |url: &str, binding, version: &str| AgentInterface {
        url: url.to_owned(),
        binding,
        version: version.to_owned(),
        tenant: None,
    };
    let rpc = "https://agent.example.com/rpc";
    let token_url = || Some("https://id.example.com/token".to_owned());
    let flows = OAuthFlows {
        authorization_code: Some(OAuthFlow {
            authorization_url: Some("https://id.example.com/authorize".to_owned()),
            token_url: token_url(),
            refresh_url: Some("https://id.example.com/refresh".to_owned()),
            scopes: [("read".to_owned(), "Read reports".to_owned())].into(),
            pkce_required: true,
            ..OAuthFlow::default()
        }),
        client_credentials: Some(OAuthFlow {
            token_url: token_url(),
            ..OAuthFlow::default()
        }),
        ..OAuthFlows::default()
    };
    let schemes = [
        (
            "key",
            SecurityScheme::ApiKey {
                description: Some("A key".to_owned()),
                location: "header".to_owned(),
                name: "X-Key".to_owned(),
            },
        ),
        (
            "basic",
            SecurityScheme::Http {
                description: None,
                scheme: "Bearer".to_owned(),
                bearer_format: Some("JWT".to_owned()),
            },
        ),
        (
            "oauth",
            SecurityScheme::OAuth2 {
                description: None,
                flows: Box::new(flows),
                metadata_url: Some(
                    "https://id.example.com/.well-known/oauth-authorization-server".to_owned(),
                ),
            },
        ),
        (
            "oidc",
            SecurityScheme::OpenIdConnect {
                description: None,
                url: "https://id.example.com/.well-known/openid-configuration".to_owned(),
            },
        ),
        ("tls", SecurityScheme::MutualTls { description: None }),
    ];
    AgentCard {
        name: "Analyst".to_owned(),
        description: "Reads reports".to_owned(),
        version: "2.1.0".to_owned(),
        interfaces: vec![
            AgentInterface {
                tenant: Some("acme".to_owned()),
                ..interface(rpc, JsonRpc, "1.0")
            },
            interface(rpc, JsonRpc, "0.3"),
            interface("https://agent.example.com/rest", HttpJson, "0.3"),
            interface("agent.example.com:443", Grpc, "1.0"),
        ],
        provider: Some(AgentProvider {
            organization: "Example".to_owned(),
            url: "https://example.com".to_owned(),
        }),
        documentation_url: Some("https://example.com/docs".to_owned()),
        icon_url: Some("https://example.com/icon.png".to_owned()),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extended_card: Some(true),
            state_transition_history: Some(false),
            extensions: vec![
                AgentExtension {
                    uri: "https://example.com/ext/v1".to_owned(),
                    description: Some("Tracing".to_owned()),
                    required: true,
                    params: metadata(json!({"level": 3})),
                },
                AgentExtension {
                    uri: "https://example.com/ext/v2".to_owned(),
                    description: None,
                    required: false,
                    params: Metadata::new(),
                },
            ],
        },
        security_schemes: schemes
            .map(|(name, scheme)| (name.to_owned(), scheme))
            .into(),
        security: vec![
            [("key".to_owned(), Vec::new())].into(),
            [
                ("oauth".to_owned(), strings(["read"])),
                ("tls".to_owned(), Vec::new()),
            ]
            .into(),
        ],
        default_input_modes: strings(["text/plain"]),
        default_output_modes: strings(["text/plain", "application/json"]),
        skills: vec![AgentSkill {
            id: "summarise".to_owned(),
            name: "Summarise".to_owned(),
            description: "Makes it short".to_owned(),
            tags: strings(["text"]),
            examples: strings(["Summarise q3.pdf"]),
            input_modes: strings(["application/pdf"]),
            output_modes: strings(["text/plain"]),
            security: vec![[("oidc".to_owned(), strings(["openid"]))].into()],
        }],
        signatures: vec![CardSignature {
            protected: "eyJhbGciOiJFUzI1NiJ9".to_owned(),
            signature: "c2ln".to_owned(),
            header: metadata(json!({"kid": "k1"})),
        }],
    }
}

fn oauth_flows(card: &mut AgentCard) -> &mut OAuthFlows {
    match card.security_schemes.get_mut("oauth") {
        Some(SecurityScheme::OAuth2 { flows, .. }) => flows,
        other => panic!("no OAuth 2 scheme but {other:?}"),
    }
}

/// As much of [`card`] as 0.3 says.
pub(crate) fn card_v03() -> AgentCard {
    let mut card = card();
    card.interfaces
        .retain(|interface| interface.version == "0.3");
    oauth_flows(&mut card)
        .authorization_code
        .as_mut()
        .unwrap()
        .pkce_required = false;
    card
}

/// As much of [`card`] as 1.0 says.
pub(crate) fn card_v1() -> AgentCard {
    let mut card = card();
    card.capabilities.state_transition_history = None;
    oauth_flows(&mut card).client_credentials = None;
    card
}

/// The model of `card-device-code.json`, which 0.3 has no words for.
pub(crate) fn card_device_code() -> AgentCard {
    let flow = OAuthFlow {
        device_authorization_url: Some("https://id.example.com/device".to_owned()),
        token_url: Some("https://id.example.com/token".to_owned()),
        scopes: [("use".to_owned(), "Use it".to_owned())].into(),
        ..OAuthFlow::default()
    };
    let flows = OAuthFlows {
        device_code: Some(flow),
        ..OAuthFlows::default()
    };
    let scheme = SecurityScheme::OAuth2 {
        description: None,
        flows: Box::new(flows),
        metadata_url: None,
    };
    AgentCard {
        name: "Kiosk".to_owned(),
        version: "1".to_owned(),
        interfaces: vec![AgentInterface {
            url: "https://kiosk.example.com".to_owned(),
            binding: ProtocolBinding::Other("https://example.com/binding/mqtt".to_owned()),
            version: "2.0".to_owned(),
            tenant: None,
        }],
        security_schemes: [("device".to_owned(), scheme)].into(),
        ..AgentCard::default()
    }
}
