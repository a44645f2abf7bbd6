//! The OpenAPI document: its examples fit and are taken by the service, its choices are those of the lists, and what it says is
//! always there is there. (Every answer that a scenario gets is held against it: `world::contract`.)
use crate::{
    on_both,
    world::{
        World,
        contract::{DOCUMENT, faults},
    },
};
use serde_json::{Value, json};

fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    })
}

/// What is shown of a content, whether it stands there or among the components.
fn examples(content: &Value) -> Vec<&Value> {
    let named = content["examples"].as_object().into_iter().flatten();
    let named = named.map(|(_, example)| {
        let path = example["$ref"].as_str().unwrap().trim_start_matches('#');
        DOCUMENT
            .pointer(path)
            .and_then(|example| example.get("value"))
            .unwrap_or_else(|| panic!("no {path}"))
    });
    content.get("example").into_iter().chain(named).collect()
}

/// Files whose bytes stand in no JSON string.
fn is_no_text(kind: &str) -> bool {
    let is_one_of = |kinds: &[&str]| kinds.iter().any(|start| kind.starts_with(start));
    is_one_of(&["audio/", "image/", "application/octet-stream", "application/pdf"])
}

#[test]
fn every_operation_has_examples_that_fit_its_schemas() {
    let mut shown = 0;
    for (method, path, operation) in operations() {
        let name = format!("{method} {path}");
        let body = operation.get("requestBody").into_iter();
        let answers = operation["responses"].as_object().unwrap().iter();
        let answers = answers.inspect(|(status, answer)| {
            let is_silent =
                *status == "204" || *status == "202" && ["/v1/_internal/password-reset", "/mcp"].contains(&path);
            assert_eq!(answer.get("content").is_none(), is_silent, "{name} {status}");
        });
        for part in body.chain(answers.map(|(_, answer)| answer)) {
            // What is said where there is no page.
            if part["description"] == "No good link." {
                continue;
            }
            let contents = || part["content"].as_object().into_iter().flatten();
            for (kind, content) in contents() {
                let (schema, examples) = (&content["schema"], examples(content));
                assert_eq!(examples.is_empty(), is_no_text(kind), "{name}: an example of {kind}");
                assert_eq!(schema["format"] == "binary", is_no_text(kind), "{name}: {kind}");
                for example in examples {
                    assert_eq!(faults(schema, example), [""; 0], "{name}: {example:#}");
                    shown += 1;
                }
            }
            // Only of sound and of bytes there is nothing to show at all.
            let has_nothing = |kind: &str| kind.starts_with("audio/") || kind == "application/octet-stream";
            let is_shown = contents().any(|(_, content)| !examples(content).is_empty());
            let is_excused = contents().all(|(kind, _)| has_nothing(kind));
            assert!(is_shown || is_excused, "{name}: an example");
        }
    }
    for (name, item) in DOCUMENT["webhooks"].as_object().unwrap() {
        let content = &item["post"]["requestBody"]["content"]["application/json"];
        assert_eq!(
            faults(&content["schema"], &content["example"]),
            [""; 0],
            "{name}: {:#}",
            content["example"]
        );
        assert_eq!(content["example"]["type"], *name);
    }
    assert!(shown > 300, "{shown}");
}

#[test]
fn everything_is_described() {
    assert!(DOCUMENT["info"]["contact"]["name"].is_string());
    for (method, path, operation) in operations() {
        assert!(
            operation["description"].as_str().is_some_and(|text| !text.is_empty()),
            "{method} {path}"
        );
        let mut known = std::collections::BTreeSet::new();
        for parameter in operation["parameters"].as_array().unwrap() {
            let name = (parameter["name"].to_string(), parameter["in"].to_string());
            assert!(known.insert(name), "{method} {path} has two: {parameter}");
            assert!(
                parameter["description"].as_str().is_some_and(|text| !text.is_empty()),
                "{method} {path} {parameter}"
            );
        }
    }
    for (name, item) in DOCUMENT["webhooks"].as_object().unwrap() {
        assert!(item["post"]["description"].is_string(), "{name}");
    }
}

/// The fields of a schema that may be missing.
fn optional(name: &str) -> Vec<&'static str> {
    let schema = &DOCUMENT["components"]["schemas"][name];
    let required = schema["required"]
        .as_array()
        .unwrap_or_else(|| panic!("{name} requires nothing"));
    let fields = schema["properties"].as_object().unwrap().keys();
    fields
        .filter(|field| !required.contains(&json!(field)))
        .map(String::as_str)
        .collect()
}

#[test]
fn what_is_always_in_an_answer_is_required() {
    for name in [
        "Agent",
        "Session",
        "Campaign",
        "Room",
        "Delivery",
        "AgentList",
        "SessionList",
    ] {
        assert_eq!(optional(name), [""; 0], "{name}");
    }
    // Shown once; and of an MCP tool only.
    assert_eq!(
        (optional("Endpoint"), optional("Function")),
        (vec!["secret"], vec!["mcp", "secret"])
    );
    let schemas = &DOCUMENT["components"]["schemas"];
    let cursor = &schemas["AgentList"]["properties"]["next_cursor"];
    assert_eq!(cursor["type"], json!(["string", "null"]));
    assert_eq!(
        schemas["Endpoint"]["properties"]["secret"]["type"], "string",
        "absent, never null"
    );
    // What is asked for may be left out as before, and is given under another name.
    assert_eq!(schemas["AgentCreate"]["required"], json!(["name", "prompt"]));
    assert_eq!(schemas["TurnDetection"].get("required"), None);
    let detection = &schemas["Agent"]["properties"]["turn_detection"];
    assert_eq!(detection["$ref"], "#/components/schemas/TurnDetectionOutput");
    assert_eq!(optional("TurnDetectionOutput"), [""; 0]);
    // One type on both sides: what is given of it has no other fields than may be asked for.
    let mut parted = 0;
    for (name, given) in schemas.as_object().unwrap() {
        let Some(asked) = name.strip_suffix("Output").and_then(|name| schemas.get(name)) else {
            continue;
        };
        parted += 1;
        let known = |field: &String| asked["properties"].get(field).is_some();
        let fields = given["properties"].as_object().into_iter().flatten();
        let others: Vec<&String> = fields.map(|(field, _)| field).filter(|field| !known(field)).collect();
        assert_eq!(others, Vec::<&String>::new(), "{name}");
        assert_eq!(given.get("enum"), asked.get("enum"), "{name}");
    }
    assert!(parted > 10, "{parted}");
}

/// Clients narrow an event by its type, and a handler by the webhook's name.
#[test]
fn an_event_is_one_of_all_that_there_are() {
    let schemas = &DOCUMENT["components"]["schemas"];
    let (events, webhooks) = (&schemas["Event"], DOCUMENT["webhooks"].as_object().unwrap());
    assert_eq!(events["oneOf"].as_array().unwrap().len(), webhooks.len());
    assert_eq!(events["discriminator"]["propertyName"], "type");
    for (event_type, item) in webhooks {
        let body = &item["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        assert_eq!(&events["discriminator"]["mapping"][event_type], body);
        let schema = DOCUMENT
            .pointer(body.as_str().unwrap().trim_start_matches('#'))
            .unwrap();
        assert_eq!(schema["properties"]["type"]["const"], *event_type);
    }
    let list = &schemas["EventList"]["properties"]["data"]["items"];
    assert_eq!(list["$ref"], "#/components/schemas/Event");
    // Told apart by the type alone.
    let content = &DOCUMENT["paths"]["/v1/events/{id}"]["get"]["responses"]["200"]["content"]["application/json"];
    let event = examples(content)[0].clone();
    assert_eq!(faults(events, &event), [""; 0]);
    let mut other = event.clone();
    other["type"] = "session.whistled".into();
    assert_ne!(faults(events, &other), [""; 0]);
}

/// What is left out of a patch stays as it is, also inside: a default would tell clients otherwise.
#[test]
fn a_merge_patch_has_no_defaults() {
    fn defaults(schema: &Value, at: &str, seen: &mut std::collections::BTreeSet<String>, found: &mut Vec<String>) {
        if schema.get("default").is_some() {
            found.push(at.to_owned());
        }
        if let Some(path) = schema["$ref"].as_str()
            && seen.insert(path.to_owned())
        {
            defaults(DOCUMENT.pointer(path.trim_start_matches('#')).unwrap(), at, seen, found);
        }
        for forms in ["anyOf", "oneOf", "allOf"] {
            for form in schema[forms].as_array().into_iter().flatten() {
                defaults(form, at, seen, found);
            }
        }
        // Lists are replaced as a whole.
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            defaults(field, &format!("{at}.{name}"), seen, found);
        }
    }
    let mut found = Vec::new();
    let (mut patches, mut seen) = (0, std::collections::BTreeSet::new());
    for (method, path, operation) in operations().filter(|(method, ..)| *method == "patch") {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        defaults(schema, &format!("{method} {path}"), &mut seen, &mut found);
        patches += 1;
    }
    assert_eq!(found, Vec::<String>::new());
    assert!(patches > 10, "{patches}");
    let schemas = &DOCUMENT["components"]["schemas"];
    let detection = |name: &str| schemas[name]["properties"]["turn_detection"].to_string();
    assert!(
        detection("AgentUpdate").contains("/TurnDetectionUpdate"),
        "{}",
        detection("AgentUpdate")
    );
    assert!(
        !detection("AgentCreate").contains("TurnDetectionUpdate"),
        "{}",
        detection("AgentCreate")
    );
}

/// The fields of a schema's inner objects that need not be there, each with what leads to it and with its schema.
fn inner_fields(schema: &Value, at: &[&str], found: &mut Vec<(Vec<String>, Value)>) {
    let schema = match schema["$ref"].as_str() {
        Some(path) => DOCUMENT.pointer(path.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    for forms in ["anyOf", "oneOf", "allOf"] {
        for form in schema[forms].as_array().into_iter().flatten() {
            inner_fields(form, at, found);
        }
    }
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    // Lists are replaced as a whole.
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = [at, &[name.as_str()][..]].concat();
        if !at.is_empty() && !is_required(name) {
            let path = path.iter().map(|part| (*part).to_owned()).collect();
            found.push((path, field.clone()));
        }
        inner_fields(field, &path, found);
    }
}

/// What may be left out may be set back, also inside.
#[test]
fn a_merge_patch_takes_null_wherever_the_service_does() {
    let mut tried = 0;
    for (method, path, operation) in operations().filter(|(method, ..)| *method == "patch") {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let mut found = Vec::new();
        inner_fields(schema, &[], &mut found);
        for (field, schema) in found {
            let faults = faults(&schema, &Value::Null);
            assert_eq!(faults, [""; 0], "{method} {path} {}", field.join("."));
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried}");
    let takes_null = |name: &str, field: &str| {
        let schema = &DOCUMENT["components"]["schemas"][name]["properties"][field];
        faults(schema, &Value::Null).is_empty()
    };
    assert!(takes_null("SilenceUpdate", "hangup_after_seconds"));
    assert!(!takes_null("Silence", "hangup_after_seconds"), "of what makes one");
    assert!(!takes_null("TransferUpdate", "number"), "it has to be there");
}

#[test]
fn what_is_asked_for_and_answered_is_called_by_whose_it_is() {
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    for name in [
        "AddCampaignContactsRequest",
        "NewContact",
        "ErrorResponse",
        "ErrorCode",
        "RoomErrorCode",
        "CampaignPreflight",
    ] {
        assert!(schemas.contains_key(name), "{name}");
    }
    for name in [
        "Add", "Added", "Change", "Create", "Error", "Given", "Look", "Run", "Say", "Test",
    ] {
        assert!(!schemas.contains_key(name), "{name}");
    }
    for path in ["/v1/events/stream", "/v1/sessions/{id}/stream"] {
        let parameters = DOCUMENT["paths"][path]["get"]["parameters"].as_array().unwrap();
        assert!(
            parameters
                .iter()
                .any(|one| one["name"] == "Last-Event-ID" && one["in"] == "header"),
            "{path}"
        );
    }
}

fn example(method: &str, path: &str) -> Value {
    let content = &DOCUMENT["paths"][path][method]["requestBody"]["content"];
    let (_, content) = content.as_object().unwrap().iter().next().unwrap();
    content["example"].clone()
}

/// The example of a request, with ids that are there.
fn with(method: &str, path: &str, ids: &[(&str, &str)]) -> Value {
    let mut body = example(method, path);
    for (name, id) in ids {
        body[*name] = (*id).into();
    }
    body
}

/// Fields and codes.
type Faults = &'static [(&'static str, &'static str)];

on_both! {
    async fn the_examples_of_requests_are_accepted(world: &mut World) {
        let tenant = world.tenant().await;
        let (api, second) = (&tenant.api, std::time::Duration::from_secs(1));
        let post = async |path: &str, at: &str, ids: &[(&str, &str)]| {
            world.advance(second).await;
            let body = with("post", path, ids);
            let answer = match &body {
                Value::String(csv) => api.upload(at, csv.as_str()).await,
                body => api.post(at, body.clone()).await,
            };
            assert!(answer.status.is_success(), "{path} {body:#}: {:#}", answer.body);
            answer.body["id"].as_str().unwrap_or_default().to_owned()
        };
        let patch = async |path: &str, at: &str| {
            world.advance(second).await;
            let answer = api.patch(at, example("patch", path)).await;
            assert!(answer.status.is_success(), "{path}: {:#}", answer.body);
        };
        let make = async |path: &str, ids: &[(&str, &str)]| post(path, path, ids).await;
        let at = |path: &str, id: &str| path.replace("{id}", id);

        let agent = make("/v1/agents", &[]).await;
        let of_agent: &[(&str, &str)] = &[("agent_id", &agent)];
        for action in ["duplicate", "simulate"] {
            let path = format!("/v1/agents/{{id}}/{action}");
            post(&path, &at(&path, &agent), &[]).await;
        }
        patch("/v1/agents/{id}", &at("/v1/agents/{id}", &agent)).await;
        let function = make("/v1/functions", &[]).await;
        patch("/v1/functions/{id}", &at("/v1/functions/{id}", &function)).await;
        let number = make("/v1/numbers", of_agent).await;
        let trunk = make("/v1/sip_trunks", &[]).await;
        patch("/v1/sip_trunks/{id}", &at("/v1/sip_trunks/{id}", &trunk)).await;
        let verified = make("/v1/verified_numbers", &[]).await;
        patch("/v1/verified_numbers/{id}", &at("/v1/verified_numbers/{id}", &verified)).await;
        let endpoint = make("/v1/webhook_endpoints", &[]).await;
        patch("/v1/webhook_endpoints/{id}", &at("/v1/webhook_endpoints/{id}", &endpoint)).await;
        let rotate = "/v1/webhook_endpoints/{id}/rotate_secret";
        post(rotate, &at(rotate, &endpoint), &[]).await;
        // Nobody is there: nothing of what happens now is for it.
        api.delete(&at("/v1/webhook_endpoints/{id}", &endpoint)).await.ok();

        let campaign = make("/v1/campaigns", of_agent).await;
        patch("/v1/campaigns/{id}", &at("/v1/campaigns/{id}", &campaign)).await;
        for action in ["duplicate", "contacts", "contacts/import"] {
            let path = format!("/v1/campaigns/{{id}}/{action}");
            post(&path, &at(&path, &campaign), &[]).await;
        }
        let contacts = at("/v1/campaigns/{id}/contacts", &campaign);
        let contact = api.get(&contacts).await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
        patch("/v1/campaigns/{id}/contacts/{contact_id}", &format!("{contacts}/{contact}")).await;
        make("/v1/campaigns/run", of_agent).await;
        make("/v1/dnc", &[]).await;
        make("/v1/dnc/import", &[]).await;
        let consent = make("/v1/consents", &[]).await;
        make("/v1/consents/import", &[]).await;
        let revoke = "/v1/consents/{id}/revoke";
        let evidence = "/v1/consents/{id}/evidence";
        let text = &DOCUMENT["paths"][evidence]["put"]["requestBody"]["content"]["text/plain"]["example"];
        let request = api.request(reqwest::Method::PUT, &at(evidence, &consent)).header("content-type", "text/plain");
        api.send(request.body(text.as_str().unwrap())).await.ok();
        post(revoke, &at(revoke, &consent), &[]).await;

        let session = make("/v1/sessions", of_agent).await;
        patch("/v1/sessions/{id}", &at("/v1/sessions/{id}", &session)).await;
        make("/v1/rooms", of_agent).await;
        make("/v1/sms_messages", &[]).await;
        make("/v1/email_messages", &[]).await;
        make("/v1/_sandbox/inbound_calls", &[]).await;
        make("/v1/_sandbox/inbound_sms", &[]).await;
        patch("/v1/numbers/{id}", &at("/v1/numbers/{id}", &number)).await;
        make("/v1/credits/topups", &[]).await;
        patch("/v1/credits", "/v1/credits").await;
        patch("/v1/concurrency", "/v1/concurrency").await;
        patch("/v1/compliance/identity", "/v1/compliance/identity").await;
        // What was begun comes to its end.
        world.advance(std::time::Duration::from_secs(3_600)).await;
    }

    /// As the document says: see `a_merge_patch_takes_null_wherever_the_service_does`.
    async fn null_sets_back_what_is_inside_of_a_resource(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = json!({ "name": "x", "prompt": "x", "silence": { "hangup_after_seconds": 77 }, "interruption": { "min_words": 7 } });
        let campaign = json!({ "name": "x", "pacing": { "calls_per_second": 7 }, "retry": { "max_attempts": 7 } });
        let table = [
            ("/v1/agents", agent, [("silence", "hangup_after_seconds"), ("interruption", "min_words")]),
            ("/v1/campaigns", campaign, [("pacing", "calls_per_second"), ("retry", "max_attempts")]),
        ];
        for (path, body, set) in table {
            let mut plain = body.clone();
            for (outer, _) in &set {
                plain.as_object_mut().unwrap().remove(*outer);
            }
            let plain = tenant.api.post(path, plain).await.ok();
            let made = tenant.api.post(path, body).await.ok();
            let at = format!("{path}/{}", made["id"].as_str().unwrap());
            for (outer, inner) in &set {
                assert_ne!(made[outer][inner], plain[outer][inner], "{outer}.{inner}");
                let patch = json!({ *outer: { *inner: null } });
                let patched = tenant.api.patch(&at, patch).await.ok();
                assert_eq!(patched[outer], plain[outer], "{outer}.{inner}");
            }
            // All that the document says, one by one. What has fields that must be there is none of what is there already.
            let item = &DOCUMENT["paths"][format!("{path}/{{id}}")]["patch"];
            let mut found = Vec::new();
            inner_fields(&item["requestBody"]["content"]["application/json"]["schema"], &[], &mut found);
            for (field, _) in found.iter().filter(|(field, _)| !matches!(field[0].as_str(), "transfer" | "template")) {
                world.advance(std::time::Duration::from_secs(1)).await;
                let patch = field.iter().rev().fold(Value::Null, |inner, name| json!({ name: inner }));
                let answer = tenant.api.patch(&at, patch).await;
                assert!(answer.status.is_success(), "{at} {}: {:#}", field.join("."), answer.body);
            }
        }
    }

    async fn all_that_is_wrong_with_a_body_is_told_at_once(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let nobody = "00000000-0000-7000-8000-000000000000";
        let told = |answer: crate::world::Answer| {
            assert_eq!((answer.status.as_u16(), &answer.body["error"]["code"]), (422, &json!("validation_failed")), "{:#}", answer.body);
            let error = &answer.body["error"];
            let details = error["details"].as_array().unwrap();
            assert_eq!((&details[0]["message"], details[0].get("param")), (&error["message"], error.get("param")));
            let told = details.iter().map(|one| (one["param"].as_str().unwrap_or_default().to_owned(), one["code"].as_str().unwrap().to_owned()));
            told.collect::<Vec<_>>()
        };
        let owned = |faults: &[(&str, &str)]| faults.iter().map(|(param, code)| ((*param).to_owned(), (*code).to_owned())).collect::<Vec<_>>();
        let table: [(&str, Value, Faults); 8] = [
            ("/v1/agents", json!({}), &[("name", "required"), ("prompt", "required")]),
            (
                "/v1/agents",
                json!({ "nmae": "x", "prompt": 5, "max_duration_seconds": 29, "brain": { "mode": "chat", "model": 5 }, "questions": [{ "key": "a", "type": "text" }] }),
                &[
                    ("nmae", "unknown_field"), ("prompt", "invalid_type"), ("max_duration_seconds", "invalid_value"),
                    ("brain.model", "invalid_type"), ("questions[0].text", "required"), ("name", "required"),
                ],
            ),
            // What reads well is judged as a whole, too.
            (
                "/v1/agents",
                json!({ "name": "x", "prompt": "x", "language": "??", "function_ids": [nobody], "voice_id": "none",
                    "questions": [{ "key": "a", "text": "A?", "type": "text", "options": ["b"] }, { "key": "a", "text": "A?", "type": "text" }] }),
                &[
                    ("language", "invalid_value"), ("questions[1].key", "invalid_value"), ("questions[0].options", "invalid_value"),
                    ("function_ids[0]", "invalid_value"), ("voice_id", "invalid_value"),
                ],
            ),
            (
                "/v1/campaigns",
                json!({ "name": "x", "agent_id": nobody, "pacing": { "calls_per_second": 5_000 }, "schedule": { "windows": [] }, "channel": "phone", "session_type": "none" }),
                &[
                    ("pacing.calls_per_second", "invalid_value"), ("schedule.windows", "invalid_value"),
                    ("session_type", "invalid_value"), ("agent_id", "invalid_value"),
                ],
            ),
            ("/v1/campaigns/run", json!({ "speed": 1 }), &[("speed", "unknown_field"), ("name", "required"), ("contacts", "required")]),
            ("/v1/numbers", json!({ "label": 5 }), &[("label", "invalid_type"), ("phone_number", "required")]),
            ("/v1/sessions", json!({ "to_number": "12", "agent_id": "ann", "colour": 1 }),
                &[("to_number", "invalid_value"), ("agent_id", "invalid_value"), ("colour", "unknown_field")]),
            (
                "/v1/webhook_endpoints",
                json!({ "url": "https://169.254.169.254/", "event_types": ["session.end", "nothing"], "headers": { "Host": "x", "X Y": "x" } }),
                &[
                    ("url", "invalid_value"), ("event_types[0]", "invalid_value"), ("event_types[1]", "invalid_value"),
                    ("headers.Host", "invalid_value"), ("headers.X Y", "invalid_value"),
                ],
            ),
        ];
        for (path, body, expected) in table {
            assert_eq!(told(tenant.api.post(path, body.clone()).await), owned(expected), "{path} {body}");
            world.advance(std::time::Duration::from_secs(1)).await;
        }
        // A change is judged with what is there already.
        let path = format!("/v1/agents/{agent}");
        let patched = tenant.api.patch(&path, json!({ "prompt": null, "language": 7, "silence": { "hangup_after_seconds": 1 } })).await;
        let expected = [("language", "invalid_type"), ("silence.hangup_after_seconds", "invalid_value"), ("prompt", "required")];
        let mut found = told(patched);
        found.sort();
        let mut expected = owned(&expected);
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(tenant.api.get(&path).await.ok()["version"], 1);
        // However much is wrong, twenty are told; a parameter is told alone.
        let many: serde_json::Map<String, Value> = (0..100).map(|n| (format!("f{n}"), n.into())).collect();
        assert_eq!(told(tenant.api.post("/v1/agents", many.into()).await).len(), 20);
        assert_eq!(told(tenant.api.get("/v1/agents?limit=900").await), owned(&[("limit", "invalid_value")]));
        let state = tenant.api.post("/v1/agents", json!({ "name": "x", "prompt": "x" })).await.ok();
        let gone = tenant.api.get(&format!("/v1/agents/{}", nobody)).await;
        assert_eq!((gone.body["error"].get("details"), state["version"].as_i64()), (None, Some(1)));
    }

    async fn the_choices_of_filters_are_those_that_lists_take(world: &mut World) {
        let tenant = world.tenant().await;
        let campaign = tenant.api.post("/v1/campaigns", json!({ "name": "x" })).await.ok()["id"].as_str().unwrap().to_owned();
        let receiver = crate::world::Receiver::start();
        let endpoint = tenant.webhook(&receiver).await;
        let mut tried = 0;
        for (_, path, operation) in operations().filter(|(method, path, _)| *method == "get" && !path.starts_with("/v1/_internal/")) {
            let at = match path {
                "/v1/campaigns/{id}/contacts" => path.replace("{id}", &campaign),
                "/v1/webhook_endpoints/{id}/deliveries" => path.replace("{id}", &endpoint),
                _ if path.contains('{') => continue,
                _ => path.to_owned(),
            };
            // About whom or what place, whatever else is asked.
            let asked = match path {
                "/v1/compliance/check" => "region=DE&",
                _ if path.starts_with("/v1/people") => "phone_number=%2B15002340011&",
                _ => "",
            };
            for parameter in operation["parameters"].as_array().unwrap() {
                let (name, schema) = (parameter["name"].as_str().unwrap(), &parameter["schema"]);
                let one = if schema["type"] == "array" { &schema["items"] } else { schema };
                let one = one["$ref"].as_str().map_or(one, |path| DOCUMENT.pointer(path.trim_start_matches('#')).unwrap());
                let Some(values) = one["enum"].as_array() else {
                    let is_choice = matches!(name, "status" | "direction" | "type" | "event_type" | "kind" | "origin" | "source" | "period" | "order");
                    assert!(!is_choice, "{path}: {name} is a choice");
                    continue;
                };
                for value in values {
                    let value = value.as_str().unwrap();
                    tenant.api.get(&format!("{at}?{asked}{name}={value}")).await.ok();
                    world.advance(std::time::Duration::from_millis(50)).await;
                    tried += 1;
                }
                let refused = tenant.api.get(&format!("{at}?{asked}{name}=nonsense")).await;
                assert_eq!(refused.error(), (422, "validation_failed", Some(name)), "{path}");
            }
        }
        assert!(tried > 100, "{tried}");
        // Several, as either kind of client writes them.
        for query in ["status=queued,completed", "status=queued&status=completed"] {
            tenant.api.get(&format!("/v1/sessions?{query}")).await.ok();
        }
        for (query, param) in [("status=queued&status=bored", "status"), ("direction=inbound&direction=outbound", "direction"), ("limit=1&limit=2", "limit")] {
            let refused = tenant.api.get(&format!("/v1/sessions?{query}")).await;
            assert_eq!(refused.error(), (422, "validation_failed", Some(param)), "{query}");
        }
    }
}
