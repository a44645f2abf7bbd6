//! What lists can be narrowed to, and what is found in all campaigns.
use crate::{on_both, world::World};
use serde_json::{Value, json};

fn names(list: &Value, field: &str) -> Vec<String> {
    let rows = list["data"].as_array().unwrap().iter();
    rows.map(|row| row[field].as_str().unwrap_or("-").to_owned()).collect()
}

on_both! {
    async fn sessions_are_found_by_number_agent_status_reference_and_disposition(world: &mut World) {
        let tenant = world.tenant().await;
        let (ann, ben) = (tenant.agent().await, tenant.agent().await);
        // The last digits say how a call goes: nobody answers, busy, and some that are answered.
        for (n, number, agent, outcome) in [
            (1, "+15002340001", &ann, "talk"), (2, "+15002340002", &ben, "busy"),
            (3, "+15002340003", &ann, "no_answer"), (4, "+15002340001", &ben, "talk"),
        ] {
            let call = json!({ "to_number": number, "agent_id": agent, "client_reference_id": format!("order {n}"), "sandbox": { "outcome": outcome } });
            tenant.api.post("/v1/sessions", call).await.ok();
            world.advance(std::time::Duration::from_secs(1)).await;
        }
        world.advance(std::time::Duration::from_secs(900)).await;
        let get = async |query: &str| tenant.api.get(&format!("/v1/sessions?{query}")).await;
        let found = async |query: &str| names(&get(query).await.ok(), "client_reference_id");
        assert_eq!(found("phone_number=%2B15002340001").await, ["order 4", "order 1"]);
        assert_eq!(found("phone_number=%2B15002340001&order=asc").await, ["order 1", "order 4"]);
        assert_eq!(found(&format!("agent_id={ben}")).await, ["order 4", "order 2"]);
        assert_eq!(found(&format!("agent_id={ben}&phone_number=%2B15002340001")).await, ["order 4"]);
        assert_eq!(found("status=busy").await, ["order 2"]);
        assert_eq!(found("status=no_answer,busy").await, ["order 3", "order 2"]);
        assert_eq!(found("status=busy,busy").await, ["order 2"], "each once");
        assert_eq!(found("client_reference_id=order+3").await, ["order 3"]);
        assert_eq!(found("type=webrtc").await, [""; 0]);
        assert_eq!(found("type=phone&limit=2").await, ["order 4", "order 3"]);
        assert_eq!(found("direction=inbound").await, [""; 0]);

        // By the time at which they were made, also where an index knows the rest.
        let all = get("order=asc").await.ok()["data"].clone();
        let second = all[1]["created_at"].as_str().unwrap();
        let (after, before) = (format!("created_after={second}"), format!("created_before={second}"));
        let later = found(&format!("{after}&order=asc")).await;
        assert!(later.len() < 4 && !later.contains(&"order 1".to_owned()), "{later:?}");
        assert!(!found(&before).await.contains(&"order 2".to_owned()));
        assert_eq!(found(&format!("{before}&status=busy")).await, [""; 0]);
        assert_eq!(found(&format!("{after}&phone_number=%2B15002340001")).await, later.iter().filter(|one| *one == "order 4").cloned().collect::<Vec<_>>());

        // Several lists are one list: page by page each is there once, in the order of them all.
        let mut paged = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = get(&format!("status=completed,busy,no_answer&limit=1{cursor}")).await.ok();
            paged.extend(names(&page, "client_reference_id"));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(paged, ["order 4", "order 3", "order 2", "order 1"]);

        let first = get("client_reference_id=order+1").await.ok()["data"][0]["id"].as_str().unwrap().to_owned();
        tenant.api.patch(&format!("/v1/sessions/{first}"), json!({ "disposition_code": "booked" })).await.ok();
        assert_eq!(found("disposition_code=booked").await, ["order 1"]);

        for (query, param) in [
            ("status=bored", "status"), ("status=busy,", "status"), ("phone_number=12", "phone_number"), ("type=fax", "type"),
            ("agent_id=ann", "agent_id"), ("client_reference_id=", "client_reference_id"), ("number=1", "number"),
        ] {
            assert_eq!(get(query).await.error(), (422, "validation_failed", Some(param)), "{query}");
        }
        // Nobody else's.
        let other = world.tenant().await;
        let others = other.api.get("/v1/sessions?phone_number=%2B15002340001").await.ok();
        assert_eq!(others["data"], json!([]));

        let stats = tenant.api.get("/v1/sessions/stats").await.ok();
        assert_eq!((stats["period"].as_str(), stats["buckets"].as_array().unwrap().len()), (Some("24h"), 24));
        assert_eq!((stats["started"].as_i64(), stats["answered"].as_i64(), stats["answer_rate"].as_f64()), (Some(4), Some(2), Some(0.5)));
        let month = tenant.api.get("/v1/sessions/stats?period=30d").await.ok();
        assert_eq!((month["buckets"].as_array().unwrap().len(), month["started"].as_i64()), (30, Some(4)));
        let talked: i64 = month["buckets"].as_array().unwrap().iter().map(|day| day["duration_seconds"].as_i64().unwrap()).sum();
        assert_eq!((talked > 0, month["duration_seconds"].as_i64()), (true, Some(talked)));
        assert_eq!(tenant.api.get("/v1/sessions/stats?period=1y").await.error(), (422, "validation_failed", Some("period")));
        assert_eq!(other.api.get("/v1/sessions/stats").await.ok()["started"], 0);
    }

    async fn contacts_are_found_in_all_campaigns_by_number_id_and_name(world: &mut World) {
        let tenant = world.tenant().await;
        let agent = tenant.agent().await;
        let contacts = |list: Value| json!({ "contacts": list });
        let mut campaigns = Vec::new();
        for (name, list) in [
            ("older", json!([{ "phone_number": "+15002340001", "external_id": "c-1", "first_name": "Zoë", "last_name": "Miller" },
                { "phone_number": "+15002340002", "first_name": "100%", "last_name": "O_Brien" }])),
            ("newer", json!([{ "phone_number": "+15002340001", "external_id": "c-9", "first_name": "ZOË", "last_name": "Milton" },
                { "phone_number": "+15002340003", "first_name": "Ann", "last_name": "Zoellner" }])),
        ] {
            let campaign = tenant.api.post("/v1/campaigns", json!({ "name": name, "agent_id": agent })).await.ok();
            let path = format!("/v1/campaigns/{}/contacts", campaign["id"].as_str().unwrap());
            tenant.api.post(&path, contacts(list)).await.ok();
            campaigns.push(path);
        }
        let get = async |query: &str| tenant.api.get(&format!("/v1/contacts?{query}")).await;
        let found = async |query: &str| names(&get(query).await.ok(), "last_name");
        assert_eq!(found("phone_number=%2B15002340001").await, ["Milton", "Miller"], "the newest campaign's first");
        assert_eq!(found("external_id=c-1").await, ["Miller"]);
        assert_eq!(found("name=zo%C3%AB").await, ["Milton", "Miller"]);
        assert_eq!(found("name=MIL").await, ["Milton", "Miller"]);
        assert_eq!(found("name=Zo%C3%AB+Mille").await, ["Miller"]);
        assert_eq!(found("name=o_b").await, ["O_Brien"], "no pattern");
        assert_eq!(found("name=%25").await, [""; 0], "nor this");
        assert_eq!(found("name=100%25").await, ["O_Brien"]);
        let first = get("name=mil&limit=1").await.ok();
        assert_eq!((first["has_more"].as_bool(), &first["next_cursor"]), (Some(true), &Value::Null));
        for (query, param) in [("", None), ("name=a&external_id=b", None), ("name=", Some("name")), ("phone_number=1", Some("phone_number"))] {
            assert_eq!(get(query).await.error(), (422, "validation_failed", param), "{query}");
        }
        let of_one = async |query: &str| names(&tenant.api.get(&format!("{}?{query}", campaigns[0])).await.ok(), "last_name");
        assert_eq!(of_one("phone_number=%2B15002340001").await, ["Miller"]);
        assert_eq!(of_one("external_id=c-9").await, [""; 0]);
        assert_eq!(of_one("status=pending&phone_number=%2B15002340002").await, ["O_Brien"]);
        let one = get("name=Zo%C3%AB+Mille").await.ok()["data"][0].clone();
        let path = format!("/v1/contacts/{}", one["id"].as_str().unwrap());
        assert_eq!(tenant.api.get(&path).await.ok(), one);
        let other = world.tenant().await;
        assert_eq!(other.api.get("/v1/contacts?name=mil").await.ok()["data"], json!([]));
        assert_eq!(other.api.get(&path).await.status.as_u16(), 404);
    }

    async fn agents_by_name_imports_and_who_is_not_to_be_called(world: &mut World) {
        let tenant = world.tenant().await;
        for name in ["Support", "support (old)", "Sales"] {
            tenant.api.post("/v1/agents", json!({ "name": name, "prompt": "x" })).await.ok();
        }
        let agents = tenant.api.get("/v1/agents?name=SUP").await.ok();
        assert_eq!(names(&agents, "name"), ["support (old)", "Support"]);

        let file = "phone_number,reason\n+12025550101,asked\nnobody,\n";
        let job = tenant.api.upload("/v1/dnc/import", file).await.ok();
        let path = format!("/v1/imports/{}", job["id"].as_str().unwrap());
        world.settle().await;
        assert_eq!(tenant.api.get(&path).await.ok()["status"], "completed");
        let list = tenant.api.get("/v1/imports?kind=dnc&status=completed").await.ok();
        let listed = &list["data"][0];
        assert_eq!((listed["id"].as_str(), listed["rejected"].as_i64()), (job["id"].as_str(), Some(1)));
        assert_eq!((&listed["rejections"], listed["rejections_truncated"].as_bool()), (&json!([]), Some(true)));
        assert_eq!(tenant.api.get(&path).await.ok()["rejections"].as_array().unwrap().len(), 1);
        assert_eq!(tenant.api.get("/v1/imports?kind=contacts").await.ok()["data"], json!([]));
        assert_eq!(tenant.api.get("/v1/imports?status=lost").await.error(), (422, "validation_failed", Some("status")));

        // Who did it, and why it was undone.
        let by = job["created_by"].as_str().unwrap().to_owned();
        assert!(by.contains("vk_test_"), "{by}");
        let entry = tenant.api.get("/v1/dnc").await.ok()["data"][0].clone();
        assert_eq!((entry["created_by"].as_str(), &entry["removed_at"]), (Some(&*by), &Value::Null));
        tenant.api.delete(&format!("/v1/dnc/{}?reason=asked+again", entry["id"].as_str().unwrap())).await.ok();
        assert_eq!(tenant.api.get("/v1/dnc").await.ok()["data"], json!([]));
        let removed = tenant.api.get("/v1/dnc?removed=true").await.ok()["data"][0].clone();
        assert_eq!((removed["removed_reason"].as_str(), removed["removed_by"].as_str()), (Some("asked again"), Some(&*by)));
        assert_eq!(tenant.api.get("/v1/dnc?removed=yes").await.error(), (422, "validation_failed", Some("removed")));
    }
}
