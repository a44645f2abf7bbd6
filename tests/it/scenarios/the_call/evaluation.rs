//! What is found out about a talk: how it went, and what was answered. By the agent while it talks, by plain rules or a
//! language model afterwards, and by a person last.
use super::{agent, call, said, session, told};
use crate::{
    on_both,
    world::{
        Tenant, World,
        chat_server::{Answer, ChatServer},
        minutes, seconds,
    },
};
use entities::{
    evaluation::{self, Status},
    ids::SessionId,
};
use serde_json::{Value, json};

/// Two to choose from. The sandbox's person says "That sounds good to me."
fn choice() -> Value {
    json!([{ "code": "not_interested" }, { "code": "interested", "label": "Wants more" }])
}

/// A campaign of one call with this agent, run to its end: campaign, contact, session.
async fn run_one(world: &World, tenant: &Tenant, agent: &str, more: Value) -> (String, String, String) {
    let campaign = begin_one(tenant, agent, more).await;
    world.advance(minutes(3)).await;
    let (contact, session) = its_call(tenant, &campaign).await;
    (campaign, contact, session)
}

async fn begin_one(tenant: &Tenant, agent: &str, more: Value) -> String {
    let mut campaign = json!({ "name": "Spring", "agent_id": agent, "contacts": [{ "phone_number": "+15002345600" }] });
    campaign
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    tenant.api.post("/v1/campaigns/run", campaign).await.ok()["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn its_call(tenant: &Tenant, campaign: &str) -> (String, String) {
    let sessions = tenant
        .api
        .get(&format!("/v1/sessions?campaign_id={campaign}"))
        .await
        .ok();
    let row = &sessions["data"][0];
    let text = |name: &str| row[name].as_str().unwrap().to_owned();
    (text("contact_id"), text("id"))
}

async fn contact(tenant: &Tenant, campaign: &str, contact: &str) -> Value {
    tenant
        .api
        .get(&format!("/v1/campaigns/{campaign}/contacts/{contact}"))
        .await
        .ok()
}

/// The stored job of a call.
async fn job(world: &World, session: &str) -> Option<evaluation::Model> {
    let id: SessionId = session.parse().unwrap();
    evaluation::load(&world.deps().db.read, id).await.unwrap()
}

fn names(data: &Value) -> Vec<&str> {
    data.as_object().unwrap().keys().map(String::as_str).collect()
}

fn script(words: &[&str]) -> Value {
    let steps: Vec<Value> = words.iter().map(|words| json!({ "say": words })).collect();
    json!({ "sandbox": { "script": steps } })
}

/// An agent that asks these one after the other, then says goodbye.
fn asks(questions: &[&str]) -> Value {
    let replies: Vec<Value> = questions.iter().map(|words| json!({ "say": words })).collect();
    json!({ "mode": "scripted", "replies": replies })
}

/// A model that answers every question about a talk with this.
async fn judge(world: &mut World, answer: Answer) -> ChatServer {
    let server = ChatServer::start_with(move |request, _| {
        assert_ne!(request["stream"], true, "nobody talks with it here");
        answer.clone()
    })
    .await;
    world.change_setting("chat_url", json!(server.url())).await;
    server
}

on_both! {
    async fn plain_rules_say_how_a_call_went(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({ "dispositions": choice(), "brain": asks(&["Fine.", "Well."]) })).await;
        let (campaign, person, id) = run_one(world, &tenant, &agent, json!({})).await;
        let types = tenant.event_types().await;
        let at = |name: &str| types.iter().position(|known| known == name).unwrap();
        assert!(at("session.ended") < at("session.disposition_set"), "{types:?}");
        let set = told(&tenant, "session.disposition_set").await;
        assert_eq!(set.len(), 1);
        assert_eq!(names(&set[0]), ["session_id", "campaign_id", "contact_id", "disposition_code", "disposition_note", "evaluated_at", "evaluator"]);
        let expected = json!({
            "session_id": id, "campaign_id": campaign, "contact_id": person, "disposition_code": "interested",
            "disposition_note": "said: That sounds good to me.", "evaluated_at": set[0]["evaluated_at"], "evaluator": "rules",
        });
        assert_eq!(set[0], expected);
        let row = session(&tenant, &id).await;
        assert_eq!((row["disposition_code"].as_str(), row["disposition_by"].as_str()), (Some("interested"), Some("rules")));
        assert_eq!(contact(&tenant, &campaign, &person).await["disposition_code"], "interested");
        let report = tenant.api.get(&format!("/v1/campaigns/{campaign}/report.csv")).await.ok().as_str().unwrap().to_owned();
        let mut rows = csv::Reader::from_reader(report.as_bytes());
        let column = rows.headers().unwrap().iter().position(|name| name == "disposition_code").unwrap();
        assert_eq!(&rows.records().next().unwrap().unwrap()[column], "interested");
        assert_eq!(job(world, &id).await.unwrap().status, Status::Done);
    }

    async fn an_agent_that_said_it_itself_is_believed(world: &mut World) {
        let tenant = world.tenant().await;
        let inline = json!({ "name": "set_disposition", "arguments": { "code": "not_interested", "note": "Said so." } });
        let agent = agent(&tenant, json!({ "dispositions": choice(), "brain": { "mode": "scripted", "replies": [{ "say": "Fine.", "call": inline }] } })).await;
        let (campaign, person, id) = run_one(world, &tenant, &agent, json!({})).await;
        let row = session(&tenant, &id).await;
        assert_eq!(["disposition_code", "disposition_note", "disposition_by"].map(|name| row[name].as_str()), [Some("not_interested"), Some("Said so."), Some("agent")]);
        assert_eq!(told(&tenant, "session.disposition_set").await, Vec::<Value>::new());
        assert_eq!(contact(&tenant, &campaign, &person).await["disposition_code"], "not_interested");
        assert!(job(world, &id).await.is_none(), "there is nothing to find out");
    }

    /// Without anything to choose from, without a campaign, and without a talk nothing is set.
    async fn calls_that_are_not_classified(world: &mut World) {
        let tenant = world.tenant().await;
        let plain = agent(&tenant, json!({})).await;
        let (_, _, first) = run_one(world, &tenant, &plain, json!({})).await;
        // A campaign keeps the agent that it was started with.
        let campaign = begin_one(&tenant, &plain, json!({ "contacts": [{ "phone_number": "+15002345620" }] })).await;
        tenant.api.patch(&format!("/v1/agents/{plain}"), json!({ "dispositions": choice() })).await.ok();
        world.advance(minutes(3)).await;
        let (_, second) = its_call(&tenant, &campaign).await;
        let third = call(&tenant, &plain, "+15002345630", json!({})).await;
        world.advance(minutes(2)).await;
        let (_, _, fourth) = run_one(world, &tenant, &plain, json!({ "contacts": [{ "phone_number": "+15002345642" }] })).await;
        for (id, status) in [(&first, "completed"), (&second, "completed"), (&third, "completed"), (&fourth, "no_answer")] {
            let row = session(&tenant, id).await;
            assert_eq!((row["status"].as_str(), &row["disposition_code"]), (Some(status), &Value::Null), "{row}");
            assert!(job(world, id).await.is_none());
        }
        // A person's word is kept, and is not told either: there was nothing to choose from.
        tenant.api.patch(&format!("/v1/sessions/{first}"), json!({ "disposition_code": "sold" })).await.ok();
        world.settle().await;
        assert_eq!(told(&tenant, "session.disposition_set").await, Vec::<Value>::new());
    }

    async fn a_campaigns_own_dispositions_count_instead(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({ "dispositions": [{ "code": "interested" }] })).await;
        let own = json!([{ "code": "voted", "description": "Sounds good, they vote for us" }, { "code": "refused" }]);
        let (_, _, id) = run_one(world, &tenant, &agent, json!({ "dispositions": own })).await;
        assert_eq!(told(&tenant, "session.disposition_set").await[0]["disposition_code"], "voted");
        let bad = tenant.api.patch(&format!("/v1/sessions/{id}"), json!({ "disposition_code": "interested" })).await;
        assert_eq!(bad.error(), (422, "validation_failed", Some("disposition_code")));
        let plain = super::agent(&tenant, json!({})).await;
        run_one(world, &tenant, &plain, json!({ "dispositions": own })).await;
        let codes: Vec<Value> = told(&tenant, "session.disposition_set").await.iter().map(|set| set["disposition_code"].clone()).collect();
        assert_eq!(codes, ["voted", "voted"], "of an agent that has none");
    }

    async fn a_person_has_the_last_word_without_a_second_event(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({ "dispositions": choice() })).await;
        let (campaign, person, id) = run_one(world, &tenant, &agent, json!({})).await;
        let path = format!("/v1/sessions/{id}");
        let judged = tenant.api.patch(&path, json!({ "disposition_code": "not_interested", "disposition_note": "Called me back." })).await.ok();
        assert_eq!((judged["disposition_code"].as_str(), judged["disposition_by"].as_str()), (Some("not_interested"), Some("human")));
        assert_eq!(contact(&tenant, &campaign, &person).await["disposition_code"], "not_interested");
        world.restart().await;
        world.advance(minutes(10)).await;
        assert_eq!(session(&tenant, &id).await["disposition_note"], "Called me back.");
        let set = told(&tenant, "session.disposition_set").await;
        assert_eq!(set.iter().map(|data| data["evaluator"].as_str().unwrap()).collect::<Vec<_>>(), ["rules"]);
    }

    async fn a_model_says_how_a_call_went_and_what_was_answered(world: &mut World) {
        let found = json!({
            "disposition_code": "interested", "disposition_note": "Wants\u{0} a brochure.",
            "answers": [
                { "key": "colour", "value": "blue", "evidence_turn": 3 },
                { "key": "colour", "value": "red", "evidence_turn": 3 },
                { "key": "seats", "value": "many", "evidence_turn": 3 },
                { "key": "size", "value": "large", "evidence_turn": 99 },
                { "key": "shoe", "value": "left", "evidence_turn": 1 },
            ],
        });
        let server = judge(world, Answer::Words(format!("```json\n{found}\n```"))).await;
        let tenant = world.tenant().await;
        let questions = json!([{ "key": "colour", "text": "Which colour?" }, { "key": "seats", "text": "How many seats?", "type": "number" }, { "key": "size", "text": "Which size?" }]);
        let agent = agent(&tenant, json!({ "dispositions": choice(), "questions": questions, "brain": asks(&["Which colour?", "Well."]) })).await;
        let (campaign, person, id) = run_one(world, &tenant, &agent, json!({})).await;
        let set = told(&tenant, "session.disposition_set").await;
        assert_eq!(set.len(), 1);
        assert_eq!(names(&set[0]), ["session_id", "campaign_id", "contact_id", "disposition_code", "disposition_note", "evaluated_at", "evaluator", "model"]);
        assert_eq!(["disposition_code", "disposition_note", "evaluator", "model"].map(|name| set[0][name].as_str().unwrap()), ["interested", "Wants a brochure.", "llm", "local"]);
        assert_eq!(contact(&tenant, &campaign, &person).await["disposition_code"], "interested");
        let answers = tenant.api.get(&format!("/v1/sessions/{id}/answers")).await.ok()["data"].clone();
        let kept: Vec<_> = answers.as_array().unwrap().iter().map(|one| (one["question_key"].as_str().unwrap(), one["value"].clone(), one["evidence_turn"].as_u64().unwrap(), one["source"].as_str().unwrap())).collect();
        assert_eq!(kept, [("colour", json!("blue"), 3, "llm")], "what does not fit, and what has no evidence, is nobody's answer");

        let requests = server.requests();
        assert_eq!(requests.len(), 1, "the agent itself needs no model");
        let schema = &requests[0]["response_format"]["json_schema"]["schema"]["properties"];
        assert_eq!(schema["disposition_code"]["enum"], json!(["not_interested", "interested"]));
        let shown = requests[0]["messages"][1]["content"].as_str().unwrap();
        let turns: Value = serde_json::from_str(shown).unwrap();
        assert_eq!(turns[3], json!({ "turn": 3, "role": "user", "content": "That sounds good to me." }), "evidence has the transcript's own numbers");
    }

    async fn a_model_that_cannot_say_leaves_the_call_unclassified(world: &mut World) {
        for (answer, requests, why) in [
            (Answer::Words(json!({ "disposition_code": "sold", "disposition_note": "x" }).to_string()), 3, "no disposition of the list"),
            (Answer::Words("It went well, I think.".into()), 3, "did not answer in JSON"),
            (Answer::Status(500, "out of order".into()), 6, "it answered 500: out of order"),
            (Answer::Garbage, 3, "does not speak the protocol"),
        ] {
            let server = judge(world, answer).await;
            let tenant = world.tenant().await;
            let agent = agent(&tenant, json!({ "dispositions": choice() })).await;
            let (campaign, person, id) = run_one(world, &tenant, &agent, json!({})).await;
            let row = session(&tenant, &id).await;
            assert_eq!((row["status"].as_str(), &row["disposition_code"]), (Some("completed"), &Value::Null), "{why}");
            assert_eq!(contact(&tenant, &campaign, &person).await["disposition_code"], Value::Null);
            assert_eq!(told(&tenant, "session.disposition_set").await, Vec::<Value>::new());
            let stored = job(world, &id).await.unwrap();
            assert_eq!((stored.status, stored.tries), (Status::Failed, 3), "{why}");
            assert!(stored.error.as_deref().unwrap().contains(why), "{stored:?}");
            assert_eq!(server.requests().len(), requests, "{why}: three tries, each once more where it may be bad luck");
            // It stays so, and a person may still say it: then it is told, for nobody said it before.
            world.restart().await;
            world.advance(minutes(10)).await;
            assert_eq!(server.requests().len(), requests);
            tenant.api.patch(&format!("/v1/sessions/{id}"), json!({ "disposition_code": "interested" })).await.ok();
            world.settle().await;
            let set = told(&tenant, "session.disposition_set").await;
            assert_eq!((set.len(), set[0]["evaluator"].as_str()), (1, Some("human")));
        }
    }

    async fn a_crash_before_a_call_was_judged_is_made_up_for_once(world: &mut World) {
        let found = json!({ "disposition_code": "interested", "disposition_note": "x" }).to_string();
        let server = ChatServer::start_with(move |_, nth| if nth == 0 { Answer::Hang } else { Answer::Words(found.clone()) }).await;
        world.change_setting("chat_url", json!(server.url())).await;
        let tenant = world.tenant().await;
        let agent = agent(&tenant, json!({ "dispositions": choice() })).await;
        let campaign = begin_one(&tenant, &agent, json!({})).await;
        // The clock stands still while the model thinks: the crash comes in between.
        let thinks = async {
            while server.requests().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = world.advance(minutes(3)) => panic!("the model was not asked"),
            () = thinks => {}
        }
        let (person, id) = its_call(&tenant, &campaign).await;
        assert_eq!(session(&tenant, &id).await["status"], "completed");
        assert_eq!(job(world, &id).await.unwrap().status, Status::Pending);
        for _ in 0..2 {
            world.restart().await;
            world.advance(seconds(90)).await;
            assert_eq!(told(&tenant, "session.disposition_set").await.len(), 1);
            assert_eq!(server.requests().len(), 2);
        }
        assert_eq!(session(&tenant, &id).await["disposition_code"], "interested");
        assert_eq!(contact(&tenant, &campaign, &person).await["disposition_code"], "interested");
        assert_eq!(told(&tenant, "session.ended").await.len(), 1);
    }

    async fn questions_are_listed_and_their_answers_found(world: &mut World) {
        let tenant = world.tenant().await;
        let questions = json!([
            { "key": "seats", "text": "How many seats do you need?", "type": "number", "required": true },
            { "key": "company", "text": "Which company do you work for?" },
            { "key": "plan", "text": "Which plan do you prefer?", "type": "choice", "options": ["Basic", "Premium"] },
            { "key": "never", "text": "What is your favourite poem?" },
        ]);
        let brain = asks(&["How many seats do you need?", "And which company do you work for?", "Which plan do you prefer?"]);
        let id = agent(&tenant, json!({ "questions": questions, "brain": brain })).await;
        let listed = tenant.api.get("/v1/questions").await.ok();
        let keys: Vec<_> = listed["data"].as_array().unwrap().iter().map(|one| (one["key"].as_str().unwrap(), one["type"].as_str().unwrap(), one["required"].as_bool().unwrap())).collect();
        assert_eq!(keys, [("seats", "number", true), ("company", "text", false), ("plan", "choice", false), ("never", "text", false)]);
        assert_eq!((&listed["data"][0]["agent_id"], &listed["data"][2]["options"]), (&json!(id), &json!(["Basic", "Premium"])));

        let first = call(&tenant, &id, "+15002345600", script(&["Hello.", "We need 12 seats.", "=HYPERLINK(\"http://evil.example\")", "The premium one."])).await;
        world.advance(minutes(2)).await;
        let second = call(&tenant, &id, "+15002345610", script(&["Hello.", "I need 3."])).await;
        world.advance(minutes(2)).await;
        let turns = tenant.api.get(&format!("/v1/sessions/{first}/transcript.json")).await.ok()["turns"].clone();
        let answers = tenant.api.get(&format!("/v1/answers?session_id={first}")).await.ok()["data"].clone();
        let lines = said(&turns);
        for (key, value, words) in [("seats", json!(12), "We need 12 seats."), ("company", json!("=HYPERLINK(\"http://evil.example\")"), "=HYPERLINK(\"http://evil.example\")"), ("plan", json!("Premium"), "The premium one.")] {
            let answer = answers.as_array().unwrap().iter().find(|one| one["question_key"] == key).unwrap();
            assert_eq!((&answer["value"], answer["source"].as_str(), answer["agent_id"].as_str()), (&value, Some("rules"), Some(&*id)), "{answer}");
            assert_eq!(lines[answer["evidence_turn"].as_u64().unwrap() as usize], format!("user: {words}"));
        }
        assert_eq!(answers.as_array().unwrap().len(), 3, "nobody asked for a poem");

        let get = async |query: &str| tenant.api.get(&format!("/v1/answers?{query}")).await.ok();
        assert_eq!(get("").await["data"].as_array().unwrap().len(), 4);
        let seats = get("question_key=seats&order=asc&limit=1").await;
        assert_eq!((&seats["data"][0]["session_id"], &seats["has_more"]), (&json!(first), &json!(true)));
        let rest = get(&format!("question_key=seats&order=asc&limit=1&cursor={}", seats["next_cursor"].as_str().unwrap())).await;
        assert_eq!((&rest["data"][0]["session_id"], &rest["data"][0]["value"], &rest["has_more"]), (&json!(second), &json!(3), &json!(false)));
        assert_eq!(get(&format!("agent_id={id}&session_id={second}")).await["data"].as_array().unwrap().len(), 1);
        assert_eq!(get("question_key=never").await["data"], json!([]));
        let unknown = tenant.api.get("/v1/answers?typo=1").await;
        assert_eq!(unknown.status.as_u16(), 422, "{}", unknown.body);
        let other = world.tenant().await;
        assert_eq!(other.api.get("/v1/answers").await.ok()["data"], json!([]));
        assert_eq!(other.api.get("/v1/answers.csv").await.ok().as_str().unwrap().lines().count(), 1);
    }

    async fn exports_hold_no_formula_and_nobody_who_opted_out(world: &mut World) {
        let tenant = world.tenant().await;
        let questions = json!([{ "key": "company", "text": "Which company do you work for?" }]);
        let id = agent(&tenant, json!({ "questions": questions, "recording": { "enabled": true }, "brain": asks(&["Which company do you work for?", "Fine."]) })).await;
        let stays = call(&tenant, &id, "+15002345600", script(&["Hello.", "=1+1"])).await;
        let leaves = call(&tenant, &id, "+15002345610", script(&["Hello.", "Acme Limited.", "Please stop calling me."])).await;
        world.advance(minutes(3)).await;
        assert_eq!(session(&tenant, &leaves).await["end_reason"], "opt_out");
        let all = tenant.api.get("/v1/answers").await.ok();
        assert_eq!(all["data"].as_array().unwrap().len(), 2, "{all}");
        let export = async || tenant.api.get("/v1/answers.csv").await.ok().as_str().unwrap().to_owned();
        let text = export().await;
        let mut rows = csv::Reader::from_reader(text.as_bytes());
        let expected = ["answer_id", "session_id", "agent_id", "campaign_id", "contact_id", "question_key", "question", "value", "source", "created_at"];
        assert_eq!(rows.headers().unwrap().iter().collect::<Vec<_>>(), expected);
        let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 1, "{text}");
        assert_eq!((&rows[0][1], &rows[0][7]), (&*stays, "'=1+1"));
        assert!(!text.contains(&leaves));
        assert_eq!(tenant.api.get(&format!("/v1/answers.csv?session_id={leaves}")).await.ok().as_str().unwrap().lines().count(), 1);
    }

    async fn a_required_question_is_asked_before_the_agent_hangs_up(world: &mut World) {
        let tenant = world.tenant().await;
        let questions = json!([{ "key": "budget", "text": "What is your budget?", "type": "number", "required": true }]);
        let replies = json!([{ "say": "Goodbye.", "hang_up": true }, { "say": "What is your budget?" }, { "say": "Thank you, goodbye.", "hang_up": true }]);
        let id = agent(&tenant, json!({ "questions": questions, "brain": { "mode": "scripted", "replies": replies } })).await;
        let call = call(&tenant, &id, "+15002345600", script(&["Bye.", "Wait, what?", "It is 500 dollars.", "More?"])).await;
        world.advance(minutes(2)).await;
        let timeline = tenant.api.get(&format!("/v1/sessions/{call}/timeline")).await.ok();
        let refused: Vec<&str> = timeline["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "refused").map(|entry| entry["detail"].as_str().unwrap()).collect();
        assert_eq!(refused, ["end_call: ask first: What is your budget? (`budget`)"], "it is reminded once");
        let row = session(&tenant, &call).await;
        assert_eq!((row["end_reason"].as_str(), row["ended_by"].as_str()), (Some("completed"), Some("agent")));
        let answers = tenant.api.get(&format!("/v1/sessions/{call}/answers")).await.ok();
        assert_eq!((&answers["data"][0]["value"], answers["data"][0]["evidence_turn"].as_u64()), (&json!(500), Some(5)));
    }
}
