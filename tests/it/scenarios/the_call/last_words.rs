//! What was said right before the end: the model that listens for a no answers when the call is over.
use super::{agent, call, session, told};
use crate::{
    on_both,
    world::{
        Receiver, Tenant, World,
        chat_server::{Answer, ChatServer, calls},
        minutes,
    },
};
use serde_json::{Value, json};
use tokio::sync::watch;

/// A model that is asked about somebody's words, and answers when the test lets it.
struct SlowModel {
    server: ChatServer,
    asked: watch::Receiver<bool>,
    gate: watch::Sender<bool>,
}

impl SlowModel {
    /// As a chat model it ends the call at once.
    async fn start(no_more_calls: bool) -> Self {
        let (ask, asked) = watch::channel(false);
        let (gate, is_open) = watch::channel(false);
        let no = json!({ "no_more_calls": no_more_calls, "no_recording": !no_more_calls }).to_string();
        let server = ChatServer::start_with(move |request, _| {
            if request["model"] == "curt" {
                return Answer::Calls(calls([("end_call", "{}")]));
            }
            ask.send_replace(true);
            Answer::Gated(is_open.clone(), no.clone())
        });
        SlowModel {
            server: server.await,
            asked,
            gate,
        }
    }

    async fn serve(&self, world: &mut World) {
        let settings = [
            ("chat_url", json!(self.server.url())),
            ("opt_out_model", json!("judge")),
        ];
        world.change_settings(&settings).await;
    }

    /// Time passes until it is asked, and stands still while it has not answered.
    async fn is_asked(&mut self, world: &World) {
        tokio::select! {
            asked = self.asked.wait_for(|asked| *asked) => drop(asked.unwrap()),
            () = world.advance(minutes(2)) => panic!("it was not asked"),
        }
    }

    fn answer(&self) {
        self.gate.send_replace(true);
    }

    /// What it said is committed.
    async fn answered(&self, world: &World) {
        self.answer();
        world.deps().judgements.done().await;
        world.settle().await;
    }
}

const NUMBER: &str = "+15002345610";

async fn place(tenant: &Tenant, agent: &str) -> String {
    let script = json!([{ "say": "You have reached me for the very last time." }]);
    call(tenant, agent, NUMBER, json!({ "sandbox": { "script": script } })).await
}

async fn recorded(tenant: &Tenant) -> String {
    let brain = json!({ "mode": "scripted", "replies": [{ "say": "Very well." }] });
    agent(
        tenant,
        json!({ "brain": brain, "recording": { "enabled": true, "consent": "notice" } }),
    )
    .await
}

async fn end(tenant: &Tenant, id: &str) {
    tenant.api.post(&format!("/v1/sessions/{id}/end"), json!({})).await.ok();
}

async fn listed(tenant: &Tenant) -> bool {
    let path = format!("/v1/dnc/check?phone_number=%2B{}", &NUMBER[1..]);
    tenant.api.get(&path).await.ok()["listed"] == true
}

/// How it ended, and what it cost.
fn ending(row: &Value) -> Value {
    let names = [
        "status",
        "end_reason",
        "ended_by",
        "ended_at",
        "duration_seconds",
        "actual_cost_cents",
    ];
    names.iter().map(|name| row[name].clone()).collect()
}

async fn recording(tenant: &Tenant, id: &str) -> Value {
    let list = tenant.api.get(&format!("/v1/sessions/{id}/recordings")).await.ok();
    list["data"][0].clone()
}

on_both! {
    async fn a_no_counts_when_the_call_has_been_ended(world: &mut World) {
        let mut model = SlowModel::start(true).await;
        model.serve(world).await;
        let tenant = world.tenant().await;
        let id = place(&tenant, &recorded(&tenant).await).await;
        model.is_asked(world).await;
        end(&tenant, &id).await;

        let before = session(&tenant, &id).await;
        assert_eq!((&before["status"], &before["end_reason"], &before["ended_by"]), (&json!("completed"), &json!("completed"), &json!("api")));
        assert_eq!(world.deps().calls.count(), 0, "nothing holds its slot");
        assert!(!listed(&tenant).await);
        model.answered(world).await;

        assert!(listed(&tenant).await);
        assert_eq!(ending(&session(&tenant, &id).await), ending(&before), "how it ended was told, and stands");
        let detected = told(&tenant, "session.opt_out_detected").await;
        assert_eq!((detected.len(), &detected[0]["phone_number"]), (1, &json!(NUMBER)));
        let entry = tenant.api.get("/v1/dnc").await.ok()["data"][0].clone();
        assert_eq!((&entry["source"], &entry["session_id"]), (&json!("opt_out_voice"), &json!(id)));
        assert_eq!(told(&tenant, "session.opt_out_recording_pending_purge").await.len(), 1);
        world.advance(minutes(2)).await;
        let kept = recording(&tenant, &id).await;
        assert_eq!((&kept["status"], &kept["purge_reason"]), (&json!("pending_purge"), &json!("opt_out")));
    }

    async fn a_no_counts_when_the_agent_has_hung_up(world: &mut World) {
        let mut model = SlowModel::start(true).await;
        model.serve(world).await;
        let (tenant, receiver) = (world.tenant().await, Receiver::start());
        tenant.webhook(&receiver).await;
        let curt = agent(&tenant, json!({ "brain": { "mode": "chat", "model": "curt" } })).await;
        let id = place(&tenant, &curt).await;
        model.is_asked(world).await;
        // Created, started, ended: the end waits for no answer.
        receiver.arrived(3).await;
        assert_eq!(session(&tenant, &id).await["ended_by"], "agent");
        model.answered(world).await;
        assert!(listed(&tenant).await);
        assert_eq!(told(&tenant, "session.opt_out_detected").await.len(), 1);
    }

    async fn an_objection_to_the_recording_counts_too(world: &mut World) {
        let mut model = SlowModel::start(false).await;
        model.serve(world).await;
        let tenant = world.tenant().await;
        let id = place(&tenant, &recorded(&tenant).await).await;
        model.is_asked(world).await;
        end(&tenant, &id).await;
        model.answered(world).await;

        let row = session(&tenant, &id).await;
        assert_eq!((&row["consent"], &row["end_reason"]), (&json!("refused"), &json!("completed")));
        assert_eq!(told(&tenant, "session.consent_refused").await.len(), 1);
        assert!(!listed(&tenant).await);
        world.advance(minutes(10)).await;
        assert_eq!(recording(&tenant, &id).await["status"], "purged");
        assert!(world.recorded_files().is_empty());
    }

    async fn a_service_that_stops_awaits_the_answer(world: &mut World) {
        let mut model = SlowModel::start(true).await;
        model.serve(world).await;
        let tenant = world.tenant().await;
        let id = place(&tenant, &recorded(&tenant).await).await;
        model.is_asked(world).await;
        tokio::join!(world.restart_in_order(), async { model.answer() });
        assert_eq!(session(&tenant, &id).await["end_reason"], "canceled");
        assert!(listed(&tenant).await);
    }

    /// The price of waiting for nothing: only what the phrases hear is safe from a crash.
    async fn a_crash_before_the_answer_loses_it(world: &mut World) {
        let mut model = SlowModel::start(true).await;
        model.serve(world).await;
        let tenant = world.tenant().await;
        let id = place(&tenant, &recorded(&tenant).await).await;
        model.is_asked(world).await;
        end(&tenant, &id).await;
        world.restart().await;
        model.answered(world).await;
        assert!(!listed(&tenant).await);
    }
}
