//! Arbitrary models, within what the wire can carry.
//!
//! Left out is what a version has no words for by design: a name or media type on text or data
//! in 0.3, empty texts (absent, in protobuf), flows beyond those a card has room for.

use crate::samples::id;
use nuncio_core::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    Artifact, ArtifactUpdate, CancelTask, CardSignature, DeletePushConfig, Event, GetPushConfig,
    GetTask, ListPushConfigs, ListTasks, LogEvent, Message, Metadata, OAuthFlow, OAuthFlows, Part,
    PartContent, ProtocolBinding, PushAuthentication, PushConfig, Request, Response, Role, Secret,
    SecurityRequirement, SecurityScheme, SendConfiguration, SendMessage, SetPushConfig,
    StatusUpdate, SubscribeToTask, Task, TaskPage, TaskState, TaskStatus, Timestamp,
};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::str::FromStr;

/// Any JSON, three levels deep.
pub(crate) fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no infinity", |x| x.is_finite())
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner).prop_map(Value::Object),
        ]
    })
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![
        any::<String>(),
        // Names that mean something one level up.
        prop::sample::select(&["value", "data", "kind", "context_id", "task", "null", ""][..])
            .prop_map(str::to_owned),
    ];
    vec((key, value), 0..4).prop_map(|entries| entries.into_iter().collect())
}

fn metadata() -> impl Strategy<Value = Metadata> {
    object(json()).prop_map(Metadata::from)
}

fn ident<T: FromStr<Err: Debug> + Debug>() -> impl Strategy<Value = T> {
    prop_oneof!["[a-z0-9_-]{1,12}", "\\PC{1,20}"].prop_map(|text| id(&text))
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{1,16}"
}

fn time() -> impl Strategy<Value = Timestamp> {
    (Timestamp::MIN.as_millis()..=253_402_300_799_999).prop_map(Timestamp::from_millis)
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        any::<String>().prop_map(PartContent::Text),
        vec(any::<u8>(), 0..40).prop_map(PartContent::Raw),
        any::<String>().prop_map(PartContent::Url),
        json().prop_map(PartContent::Data),
    ];
    (content, metadata(), of(text()), of(text())).prop_map(
        |(content, metadata, filename, media_type)| {
            let is_file = matches!(content, PartContent::Raw(_) | PartContent::Url(_));
            Part {
                content,
                metadata,
                filename: filename.filter(|_| is_file),
                media_type: media_type.filter(|_| is_file),
            }
        },
    )
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::User), Just(Role::Agent)]
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    (
        (ident(), of(ident()), of(ident()), role()),
        vec(part(), 1..4),
        metadata(),
        vec(any::<String>(), 0..3),
        vec(ident(), 0..3),
    )
        .prop_map(
            |((id, context_id, task_id, role), parts, metadata, extensions, reference_task_ids)| {
                Message {
                    id,
                    context_id,
                    task_id,
                    role,
                    parts,
                    metadata,
                    extensions,
                    reference_task_ids,
                }
            },
        )
}

fn state() -> impl Strategy<Value = TaskState> {
    prop::sample::select(&TaskState::ALL[..])
}

fn status() -> impl Strategy<Value = TaskStatus> {
    (state(), of(message()), of(time())).prop_map(|(state, message, timestamp)| TaskStatus {
        state,
        message,
        timestamp,
    })
}

fn artifact() -> impl Strategy<Value = Artifact> {
    (
        ident(),
        of(text()),
        of(text()),
        vec(part(), 0..3),
        metadata(),
        vec(any::<String>(), 0..3),
    )
        .prop_map(
            |(id, name, description, parts, metadata, extensions)| Artifact {
                id,
                name,
                description,
                parts,
                metadata,
                extensions,
            },
        )
}

pub(crate) fn task() -> impl Strategy<Value = Task> {
    (
        ident(),
        ident(),
        status(),
        vec(artifact(), 0..3),
        vec(message(), 0..3),
        metadata(),
    )
        .prop_map(
            |(id, context_id, status, artifacts, history, metadata)| Task {
                id,
                context_id,
                status,
                artifacts,
                history,
                metadata,
            },
        )
}

fn status_update() -> impl Strategy<Value = StatusUpdate> {
    (ident(), ident(), status(), metadata()).prop_map(|(task_id, context_id, status, metadata)| {
        StatusUpdate {
            task_id,
            context_id,
            status,
            metadata,
        }
    })
}

fn artifact_update() -> impl Strategy<Value = ArtifactUpdate> {
    (
        ident(),
        ident(),
        artifact(),
        any::<bool>(),
        any::<bool>(),
        metadata(),
    )
        .prop_map(
            |(task_id, context_id, artifact, append, last_chunk, metadata)| ArtifactUpdate {
                task_id,
                context_id,
                artifact,
                append,
                last_chunk,
                metadata,
            },
        )
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        task().prop_map(Event::Task),
        message().prop_map(Event::Message),
        status_update().prop_map(Event::Status),
        artifact_update().prop_map(Event::Artifact),
    ]
}

pub(crate) fn log_event() -> impl Strategy<Value = LogEvent> {
    event().prop_map(|event| match event {
        Event::Task(task) => LogEvent::Created(task),
        Event::Message(message) => LogEvent::Message(message),
        Event::Status(update) => LogEvent::Status(update),
        Event::Artifact(update) => LogEvent::Artifact(update),
    })
}

fn secret() -> impl Strategy<Value = Secret> {
    text().prop_map(Secret::new)
}

pub(crate) fn push_config(secrets: bool) -> impl Strategy<Value = PushConfig> {
    let authentication = (vec("[A-Za-z][A-Za-z0-9-]{0,8}", 1..3), of(secret())).prop_map(
        move |(schemes, secret)| PushAuthentication {
            schemes,
            credentials: secret.filter(|_| secrets),
        },
    );
    (
        of(ident()),
        any::<String>(),
        of(secret()),
        of(authentication),
    )
        .prop_map(move |(id, url, token, authentication)| PushConfig {
            id,
            url,
            token: token.filter(|_| secrets),
            authentication,
        })
}

fn set_push_config(secrets: bool) -> impl Strategy<Value = SetPushConfig> {
    (ident(), push_config(secrets)).prop_map(|(task_id, config)| SetPushConfig { task_id, config })
}

fn history_length() -> impl Strategy<Value = Option<u32>> {
    of(prop_oneof![0..5_u32, Just(i32::MAX.unsigned_abs())])
}

fn send() -> impl Strategy<Value = SendMessage> {
    let configuration = (
        vec(any::<String>(), 0..3),
        of(push_config(true)),
        history_length(),
        any::<bool>(),
    )
        .prop_map(
            |(accepted_output_modes, push_config, history_length, return_immediately)| {
                SendConfiguration {
                    accepted_output_modes,
                    push_config,
                    history_length,
                    return_immediately,
                }
            },
        );
    (message(), configuration, metadata()).prop_map(|(message, configuration, metadata)| {
        SendMessage {
            message,
            configuration,
            metadata,
        }
    })
}

fn list_tasks() -> impl Strategy<Value = ListTasks> {
    (
        (
            of(ident()),
            of(prop::sample::select(&TaskState::ALL[1..])),
            of(time()),
        ),
        of(1..=100_u32),
        of(text()),
        history_length(),
        any::<bool>(),
    )
        .prop_map(
            |((context_id, state, status_after), page_size, page_token, history_length, all)| {
                ListTasks {
                    context_id,
                    state,
                    status_after,
                    page_size,
                    page_token,
                    history_length,
                    include_artifacts: all,
                }
            },
        )
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        4 => send().prop_map(Request::SendMessage),
        1 => send().prop_map(Request::SendStreamingMessage),
        1 => (ident(), history_length()).prop_map(|(id, history_length)| {
            Request::GetTask(GetTask { id, history_length })
        }),
        1 => list_tasks().prop_map(Request::ListTasks),
        1 => (ident(), metadata()).prop_map(|(id, metadata)| {
            Request::CancelTask(CancelTask { id, metadata })
        }),
        1 => ident().prop_map(|id| Request::SubscribeToTask(SubscribeToTask { id })),
        2 => set_push_config(true).prop_map(Request::CreatePushConfig),
        1 => (ident(), ident()).prop_map(|(task_id, config_id)| {
            Request::GetPushConfig(GetPushConfig { task_id, config_id: Some(config_id) })
        }),
        1 => (ident(), of(1..=100_u32), of(text())).prop_map(|(task_id, page_size, page_token)| {
            Request::ListPushConfigs(ListPushConfigs { task_id, page_size, page_token })
        }),
        1 => (ident(), ident()).prop_map(|(task_id, config_id)| {
            Request::DeletePushConfig(DeletePushConfig { task_id, config_id })
        }),
        1 => Just(Request::GetExtendedAgentCard),
    ]
}

pub(crate) fn response() -> impl Strategy<Value = Response> {
    let page = (
        vec(task(), 0..3),
        prop_oneof![Just(String::new()), text()],
        any::<u32>(),
    )
        .prop_map(|(tasks, next_page_token, size)| {
            Response::TaskPage(TaskPage {
                tasks,
                next_page_token,
                page_size: size % 101,
                total_size: u64::from(size >> 1),
            })
        });
    prop_oneof![
        task().prop_map(Response::SentTask),
        message().prop_map(Response::SentMessage),
        task().prop_map(Response::Task),
        page,
        set_push_config(false).prop_map(Response::PushConfig),
        // 0.3 has no pages of configs.
        vec(set_push_config(false), 0..3).prop_map(|configs| {
            Response::PushConfigs {
                configs,
                next_page_token: String::new(),
            }
        }),
        Just(Response::PushConfigDeleted),
        card().prop_map(|card| Response::Card(Box::new(card))),
    ]
}

fn flow(shape: &'static [&'static str]) -> impl Strategy<Value = Option<OAuthFlow>> {
    let has = |name| shape.contains(&name);
    of((
        text(),
        of(text()),
        btree_map(any::<String>(), any::<String>(), 0..3),
    )
        .prop_map(move |(url, refresh_url, scopes)| OAuthFlow {
            authorization_url: Some(url.clone()).filter(|_| has("authorization")),
            device_authorization_url: Some(url.clone()).filter(|_| has("device")),
            token_url: Some(url).filter(|_| has("token")),
            refresh_url,
            scopes,
            pkce_required: false,
        }))
}

fn scheme() -> impl Strategy<Value = SecurityScheme> {
    // At least the first, and no device code: what both versions can say together.
    let flows = (
        flow(&["authorization", "token"]),
        any::<bool>(),
        flow(&["token"]),
        flow(&["authorization"]),
        flow(&["token"]),
    )
        .prop_map(|(first, pkce, client_credentials, implicit, password)| {
            let authorization_code = Some(OAuthFlow {
                pkce_required: pkce,
                ..first.unwrap_or_else(|| OAuthFlow {
                    authorization_url: Some("https://id.example.com".to_owned()),
                    token_url: Some("https://id.example.com".to_owned()),
                    ..OAuthFlow::default()
                })
            });
            Box::new(OAuthFlows {
                authorization_code,
                client_credentials,
                device_code: None,
                implicit,
                password,
            })
        });
    let location = prop::sample::select(&["header", "query", "cookie"][..]);
    prop_oneof![
        (of(text()), location, text()).prop_map(|(description, location, name)| {
            SecurityScheme::ApiKey {
                description,
                location: location.to_owned(),
                name,
            }
        }),
        (of(text()), text(), of(text())).prop_map(|(description, scheme, bearer_format)| {
            SecurityScheme::Http {
                description,
                scheme,
                bearer_format,
            }
        }),
        (of(text()), flows, of(text())).prop_map(|(description, flows, metadata_url)| {
            SecurityScheme::OAuth2 {
                description,
                flows,
                metadata_url,
            }
        }),
        (of(text()), text())
            .prop_map(|(description, url)| { SecurityScheme::OpenIdConnect { description, url } }),
        of(text()).prop_map(|description| SecurityScheme::MutualTls { description }),
    ]
}

fn security() -> impl Strategy<Value = Vec<SecurityRequirement>> {
    let name = prop_oneof![text(), Just("schemes".to_owned())];
    vec(btree_map(name, vec(any::<String>(), 0..3), 0..3), 0..3)
}

fn interfaces() -> impl Strategy<Value = Vec<AgentInterface>> {
    let binding = prop_oneof![
        Just(ProtocolBinding::JsonRpc),
        Just(ProtocolBinding::HttpJson),
        Just(ProtocolBinding::Grpc),
        "[a-z]{1,8}".prop_map(ProtocolBinding::Other),
    ];
    let version = prop::sample::select(&["0.3", "1.0", "2.0"][..]);
    let interface =
        (text(), binding, version, of(text())).prop_map(|(url, binding, version, tenant)| {
            AgentInterface {
                url,
                binding,
                version: version.to_owned(),
                // 0.3 has no tenants.
                tenant: tenant.filter(|_| version != "0.3"),
            }
        });
    // One of 0.3 at least, and no two alike: an address is not said twice there.
    (vec(interface, 0..4), text()).prop_map(|(mut all, url)| {
        all.push(AgentInterface::new(
            url,
            ProtocolBinding::JsonRpc,
            nuncio_core::ProtocolVersion::V0_3,
        ));
        let mut seen: Vec<AgentInterface> = Vec::new();
        all.retain(|one| {
            let new = !seen.contains(one);
            seen.push(one.clone());
            new
        });
        all
    })
}

fn extension() -> impl Strategy<Value = AgentExtension> {
    (any::<String>(), of(text()), any::<bool>(), metadata()).prop_map(
        |(uri, description, required, params)| AgentExtension {
            uri,
            description,
            required,
            params,
        },
    )
}

fn strings() -> impl Strategy<Value = Vec<String>> {
    vec(any::<String>(), 0..3)
}

fn skill() -> impl Strategy<Value = AgentSkill> {
    (
        (text(), text(), any::<String>()),
        strings(),
        strings(),
        strings(),
        strings(),
        security(),
    )
        .prop_map(
            |((id, name, description), tags, examples, input_modes, output_modes, security)| {
                AgentSkill {
                    id,
                    name,
                    description,
                    tags,
                    examples,
                    input_modes,
                    output_modes,
                    security,
                }
            },
        )
}

/// A card that all three forms can be made of; each leaves out what it has no words for.
pub(crate) fn card() -> impl Strategy<Value = AgentCard> {
    let flags = || of(any::<bool>());
    let capabilities = (flags(), flags(), flags(), flags(), vec(extension(), 0..2)).prop_map(
        |(streaming, push_notifications, extended_card, state_transition_history, extensions)| {
            AgentCapabilities {
                streaming,
                push_notifications,
                extended_card,
                state_transition_history,
                extensions,
            }
        },
    );
    let provider = (any::<String>(), any::<String>())
        .prop_map(|(organization, url)| AgentProvider { organization, url });
    let signature = (any::<String>(), any::<String>(), metadata()).prop_map(
        |(protected, signature, header)| CardSignature {
            protected,
            signature,
            header,
        },
    );
    (
        (
            any::<String>(),
            any::<String>(),
            any::<String>(),
            of(text()),
            of(text()),
        ),
        (interfaces(), of(provider), capabilities),
        (btree_map(any::<String>(), scheme(), 0..3), security()),
        (
            strings(),
            strings(),
            vec(skill(), 0..3),
            vec(signature, 0..2),
        ),
    )
        .prop_map(|(texts, who, how, what)| AgentCard {
            name: texts.0,
            description: texts.1,
            version: texts.2,
            interfaces: who.0,
            provider: who.1,
            documentation_url: texts.3,
            icon_url: texts.4,
            capabilities: who.2,
            security_schemes: how.0,
            security: how.1,
            default_input_modes: what.0,
            default_output_modes: what.1,
            skills: what.2,
            signatures: what.3,
        })
}
